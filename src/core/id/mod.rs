//! IDs of a layout: their numbers, texts and spans of time.

mod codec;
pub(crate) mod explain;
mod text;

pub use self::codec::Parts;
