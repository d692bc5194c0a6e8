//! The type `sno` and its functions.

mod datum;
mod during;
mod io;
mod next;
mod operator;
mod operators;
mod parts;
mod statistics;
