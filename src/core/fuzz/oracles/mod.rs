//! Rules that hold for everything that comes from outside. The fuzz targets and tests/fuzz.rs ask these questions.

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
