//! Sequences whose numbers are IDs: the functions of the schema flake_sequences, and how a sequence is adopted.

mod access;
mod adopt;
mod current;
mod memory;
mod native_last;
mod next;
mod registry;
mod set;

/// Subscribes to what these functions remember.
pub fn subscribe() {
    crate::postgres::sequence::subscribe();
}
