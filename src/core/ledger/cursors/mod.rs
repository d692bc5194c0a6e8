//! The cursors of lanes in shared memory, which lines have the cursors of a layout, and which IDs they say that this server has made.

pub mod claims;
pub mod line;
pub mod own;
