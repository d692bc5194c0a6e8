//! IDs of a layout: their numbers, texts and times.

pub(crate) mod above;
mod codec;
pub(crate) mod during;
pub(crate) mod explain;
mod text;
mod time;

pub use self::codec::Parts;
