//! The type `sno` and its functions.

mod admin;
mod datum;
mod during;
mod io;
mod next;
mod operators;
mod parts;
mod statistics;
