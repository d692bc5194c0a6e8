//! IDs of a layout: their numbers, texts and spans of time.

pub(crate) mod above;
mod codec;
pub(crate) mod explain;
mod filter;
pub(crate) mod text;

pub use self::codec::Parts;
pub use self::explain::Run;
pub use self::filter::ContiguousIds;
