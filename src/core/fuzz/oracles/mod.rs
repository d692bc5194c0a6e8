//! Rules for everything that comes from outside. The fuzz targets and tests/fuzz.rs check them.

mod choices;
mod definition;
mod generators;
mod layout;
mod page;
mod sno;
mod text;

pub use definition::{built, written};
pub use page::page;
pub use sno::sno;
pub use text::text;
