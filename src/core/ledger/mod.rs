//! The ledger: what keeps an ID from being made twice over time, as one protocol that servers play.
//!
//! *Used time* ([`used`]) is a set that only grows. *Marks* ([`marks`]) say what each node has used; the file of a server and a
//! page of each database keep them in the same form ([`block`]). The [`state`] of a server decides what is granted, the
//! [`protocol`] in which order it is written, and a [`host`] does it.

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
