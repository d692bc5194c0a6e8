//! The ledger: how a server remembers which time it has used, so that no ID is made twice.
//!
//! While a server runs, the cursors of lanes ([`cursors`]) keep its sessions apart: no two of them take the same ID. A crash, a restart
//! or a failover loses the cursors, and a clock can step back in between. So time only goes up: an ID's time is the greater of the
//! clock and of what has been used. Time is *reserved* before it is used, in a file of the server and in a page of each database
//! ([`durable`]), and whoever has the data begins above it. If the clock is behind, IDs *lead* it ([`time`]).
//!
//! The rules stand above the types that obey them: 1 to 3 in [`durable`], 4, 5 and 7 in [`time`], 6 in [`crate::watermark`], and 8 in
//! the generator. A [`host`] does the reading and writing.

pub mod cursors;
pub mod durable;
pub mod host;
pub mod time;
