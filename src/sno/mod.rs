//! The type `sno` and its functions.

mod datum;
mod io;
mod next;
mod operators;
mod parts;
