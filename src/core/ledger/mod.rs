//! The ledger: how a server remembers which time it has used, so that no ID is made twice.
//!
//! An ID holds its node, its slot and an instant. Two sessions that live at the same time differ in node or slot. A session and an
//! earlier owner of its slot do not, so the later one may only use time that nobody has used before it, even after a crash, a
//! failover or a step of the clock. *Used time* ([`used`]) is a set of instants that only grows. A *mark* ([`marks`]) is the
//! high-water mark of a node: its used time. The file of a server and a page of each database hold marks in the same format
//! ([`block`]).
//!
//! [`state`] decides which time is granted, [`protocol`] in which order it is written, and a [`host`] does the reading and writing.

pub mod block;
pub mod bound;
pub mod host;
pub mod lookout;
pub mod marks;
pub mod note;
pub mod pool;
pub mod protocol;
pub mod record;
pub mod slot;
pub mod state;
pub mod used;
pub mod window;
