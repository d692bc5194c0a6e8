//! Time-ordered unique IDs of the Snowflake family, as arithmetic.
//!
//! A *layout* divides the bits of an ID into fields. A *tick* is the unit of its timestamp. The (worker × sequence) space
//! of a tick is divided into *shares*, one for each *slot* of each *node*. A *generator* walks through its share by
//! *position*, tick after tick, and the *ledger* says how far earlier generators got.
//!
//! This crate knows no database, reads no clock and draws no random numbers: instants (microseconds since
//! 1970-01-01T00:00:00Z, without leap seconds) and random bits are arguments.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod bits;
mod builtin;
mod codec;
mod definition;
mod error;
mod explain;
mod generator;
pub mod horizon;
mod key;
mod layout;
pub mod ledger;
mod path;
pub mod resume;
mod share;
pub mod sno;
mod span;
mod text;
mod time;
mod walk;

pub use builtin::{BUILTIN, built_in, unknown_layout};
pub use codec::Parts;
pub use definition::{Definition, FieldDefinition, LONGEST_NAME, RoleName};
pub use error::{DefinitionFault, Error};
pub use generator::{Answer, Generator, Remaining};
pub use layout::{Fault, Field, Layout, Reversal, Role, SequenceRule};
pub use ledger::slot::{FinalProgress, Progress, SlotProgress, Start};
pub use ledger::window::Window;
pub use share::{Node, Numbers, SHARE_RULE, Share, Slot};
pub use sno::{Sno, SnoGenerator, SnoParts};
pub use text::{TextFault, TextForm};
