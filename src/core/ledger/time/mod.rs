//! Time: the era, the instant for the next ID, and which time is granted.
//!
//! 4. One 64-bit *era* word, a counter whose last bit is the generation, is read before everything else of an ID, and compared after
//!    the transaction's bound is published, after a lane's cursor is swapped, under the lock before time is granted, and after a watermark's
//!    bounds were read. Everything that sessions read or raise without a lock exists once for each generation and only rises; a
//!    writer changes that first and the era last. A request for time, an announcement and an anchor carry the era of their reading,
//!    and are dropped if the era has changed. No cursor is ever reset, and each change of the floor begins an era.
//! 5. *flake's time* is max(clock, anchor + steady / 2), where the steady clock is never set. The anchor is one number, raised by
//!    fetch_max, and cleared by compare-and-swap when the clock has caught up: so a lead takes twice its length. It is a hint, and no
//!    proof uses it. A session raises it where the floor, an announced watermark or a lane's cursor is above a reading of the clock that
//!    it has made since. Time is reserved 3 seconds ahead of the clock, and at least half a second ahead of flake's time, so restarts
//!    do not add up. Where time is granted, a lead must not exceed flake.max_lead.
//! 7. flake_start_above raises `until` of both generations and the floor, then waits for transactions with a bound.
//!    flake_accept_clock does nothing if IDs do not lead, or if IDs of the other generation would lead as far; otherwise it changes
//!    to that one, if its `until` is less than flake.max_lead ahead. It waits for nobody. If its write fails, no time is granted until
//!    a write has succeeded.

pub mod begin;
pub(crate) mod change;
pub mod grant;
pub mod lead;
pub mod operator;
pub mod shared;
pub mod state;
