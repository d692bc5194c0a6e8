//! Time-ordered unique IDs of the Snowflake family, as arithmetic.
//!
//! The words used here: a *layout* divides the bits of an ID into fields; a *tick* is the unit of its timestamp; the
//! (worker × sequence) space of a tick is divided into *shares*, one for each *slot* of each *node*; a *generator*
//! walks through its share by *position*, tick after tick; the *ledger* says how far those before it got.
//!
//! Nothing here knows a database, reads a clock or draws a random number: instants (microseconds since
//! 1970-01-01T00:00:00Z, leap seconds ignored) and random bits are arguments.

mod bits;
mod builtin;
mod codec;
mod definition;
mod error;
mod explain;
mod generator;
mod layout;
pub mod ledger;
mod path;
pub mod record;
pub mod session;
mod share;
pub mod sno;
mod span;
mod text;
mod time;
pub mod timeline;

pub use builtin::{BUILTIN, built_in, unknown_layout};
pub use codec::Parts;
pub use definition::{Definition, FieldDefinition, RoleName};
pub use error::{DefinitionFault, Error};
pub use generator::{Generator, Step};
pub use layout::{Fault, Field, Layout, Reversal, Role, SequenceRule};
pub use ledger::{Ledger, Start, Trace, Traces, Window};
pub use share::{Node, Numbers, Share, Slot};
pub use sno::{Sno, SnoGenerator, SnoParts};
pub use span::Bound;
pub use text::{TextFault, TextForm};
