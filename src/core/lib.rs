//! Time-ordered unique IDs of the Snowflake family, as pure computation.
//!
//! A *layout* divides the bits of an ID into fields. A *tick* is the unit of its timestamp. The (worker × sequence) space of a tick
//! is divided among *nodes*, and a node's part into *lanes*. A *cursor* says how far the IDs of a lane are taken. A *generator* takes
//! blocks of IDs from lanes, tick after tick, and the *ledger* records which time is used.
//!
//! This crate knows no database, reads no clock and draws no random numbers: instants (microseconds since 1970-01-01T00:00:00Z,
//! without leap seconds) and random bits are arguments. The ledger, and everything else that only the extension uses, is hidden
//! from the documentation and may change in any version.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod code;
mod cursors;
mod error;
mod generator;
mod id;
pub mod instant;
mod key;
mod lane;
mod layout;
#[doc(hidden)]
pub mod ledger;
mod node;
mod part;
pub mod seal;
pub mod sno;
mod sync;
pub mod turn;
#[doc(hidden)]
pub mod watermark;

#[doc(hidden)]
pub use code::{code_of_start, sequence_code};
pub use cursors::{Cursors, OwnCursors};
pub use error::{DefinitionFault, Error, Fault, TextFault};
#[doc(hidden)]
pub use generator::resume::{Place, Resumable, lanes_of};
pub use generator::source::IdSource;
pub use generator::{Answer, Generator, Reason, Remaining};
#[doc(hidden)]
pub use id::above::Remedy;
pub use id::text::LONGEST_TEXT;
pub use id::{ContiguousIds, Parts, Run};
#[doc(hidden)]
pub use key::sha256;
pub use lane::{DIVISION_VERSION, Lanes};
pub use layout::builtin::{BUILTIN, built_in, is_always_built_in, unknown_layout};
pub use layout::definition::{Definition, FieldDefinition, RoleName};
pub use layout::field::{Field, Reversal, Role};
pub use layout::text_form::TextForm;
pub use layout::ticks::Ticks;
pub use layout::{LONGEST_NAME, Layout, MAX_STEP_MICROS};
pub use node::{MOST_NODES, Node, Numbers};
pub use part::{PARTS, Part};
pub use sno::{Sno, SnoParts, SnoSource};
pub use turn::{TURNS, Turn, Turns};
