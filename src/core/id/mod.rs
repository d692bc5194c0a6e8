//! IDs of a layout: their numbers, texts and times.

mod codec;
pub(crate) mod during;
pub(crate) mod explain;
mod filter;
mod text;
mod time;

pub use self::codec::Parts;
pub use self::filter::Solid;
