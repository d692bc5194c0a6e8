//! The ledger: how a server remembers which time it has used, so that no ID is made twice.
//!
//! While a server runs, the words of lanes ([`line`]) keep its sessions apart: no two of them take the same ID. A crash, a restart
//! or a failover loses the words, and a clock can step back in between. So from then on sessions may only use time that nobody has
//! used before. *Used time* ([`used`]) is a set of instants that only grows. A *mark* ([`marks`]) is the high-water mark of a node:
//! its used time. The file of a server and a page of each database hold marks in the same format ([`block`]).
//!
//! [`state`] decides which time is granted, [`protocol`] in which order it is written, and a [`host`] does the reading and writing.

pub mod block;
pub mod bound;
pub mod claims;
pub mod host;
pub mod line;
pub mod marks;
pub mod note;
pub mod part_time;
pub mod protocol;
pub mod record;
pub mod slot;
pub mod state;
pub mod used;
pub mod window;
