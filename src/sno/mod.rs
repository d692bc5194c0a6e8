//! The type `sno` and its functions.

mod admin;
mod datum;
mod during;
pub mod filter;
mod io;
mod next;
mod operators;
mod parts;
mod statistics;
