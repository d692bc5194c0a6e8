//! The words of lanes in shared memory, and which lines have the words of a layout.

pub mod claims;
pub mod line;
