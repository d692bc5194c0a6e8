//! IDs of a layout: their numbers, texts and spans of time.

mod codec;
pub(crate) mod explain;
pub(crate) mod text;

pub use self::codec::Parts;
