//! Horizons: instants below which nothing can appear any more in what a snapshot sees.
//!
//! A transaction that makes IDs *holds* horizons at its bound until it has ended for the snapshot: all its IDs lie in ticks
//! that end after the bound. A session that asks for a horizon *announces* the clock first, and only then looks at the
//! bounds; a session that makes the first ID of a transaction publishes its bound first, only then looks at what was
//! announced, and makes no ID in a tick that has ended by then. So of two that meet at least one sees the other.

pub mod ask;
pub mod entries;
pub mod host;
pub mod prepared;
pub mod published;
pub mod transactions;

use std::ops::RangeInclusive;

use crate::sync::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence, spin_loop};

/// The bound of a transaction that has made no ID.
pub const NONE: i64 = i64::MAX;
/// How many transactions that have ended a slot remembers.
const KEPT: usize = if cfg!(loom) { 3 } else { 16 };
/// How many of them are remembered one by one; of the older ones, neighbors are merged, the older the more often.
const EXACT: usize = if cfg!(loom) { 0 } else { 4 };
/// Transactions whose bounds are as near as this are remembered as one, in microseconds.
const NEAR: i64 = 1000;
/// A change of what is kept takes less time than some of these attempts to read it, if its session runs.
const ATTEMPTS: usize = if cfg!(loom) { 1 } else { 1000 };

/// Which transactions have not ended as a snapshot sees it. The numbers of transactions have 64 bits, and never wrap around.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Snapshot<'a> {
    /// The transactions before this one have ended.
    pub xmin: u64,
    /// This one and those after it have not.
    pub xmax: u64,
    /// The lower 32 bits of those in between that have not ended.
    pub running: &'a [u32],
}

impl<'a> Snapshot<'a> {
    /// Creates a snapshot from PostgreSQL's numbers of 32 bits. `next` is a number that no transaction has yet.
    pub const fn new(next: u64, xmin: u32, xmax: u32, running: &'a [u32]) -> Self {
        Self { xmin: widened(next, xmin), xmax: widened(next, xmax), running }
    }

    /// Returns the transactions before a number that are listed as not ended; those from `xmax` on are not listed.
    pub fn running_before(&self, xid: u64) -> impl Iterator<Item = u64> {
        self.running.iter().map(|&running| widened(self.xmax, running)).filter(move |&running| running < xid)
    }

    /// Returns whether a transaction has not ended.
    pub fn is_running(&self, xid: u64) -> bool {
        xid >= self.xmin && (xid >= self.xmax || self.running.contains(&(xid as u32)))
    }

    /// Returns whether one of several transactions has not ended.
    pub fn is_any_running(&self, xids: RangeInclusive<u64>) -> bool {
        let last = *xids.end();
        last >= self.xmin && (last >= self.xmax || self.running_before(self.xmax).any(|xid| xids.contains(&xid)))
    }
}

/// Returns the number of 64 bits of a transaction that is not older than 2^31 transactions.
pub const fn widened(next: u64, xid: u32) -> u64 {
    next - (next as u32).wrapping_sub(xid) as u64
}

/// The transactions of one slot, which follow each other: the current one, and those that have ended lately. It lies in
/// shared memory. Only the slot's owner changes it.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct SlotTransactions {
    /// The bound of the current transaction.
    bound: AtomicI64,
    /// The database of the slot's owner.
    database: AtomicU32,
    /// Odd while what is kept changes.
    changes: AtomicU32,
    count: AtomicU32,
    merged: AtomicU32,
    /// The newest first.
    ended: [Ended; KEPT],
}

/// A transaction that has ended, or several that followed each other: the number of the newest, the bound of the oldest. A
/// snapshot that sees the newest sees the others too.
#[repr(C)]
#[derive(Debug, Default)]
struct Ended {
    xid: AtomicU64,
    bound: AtomicI64,
    /// 0 after several databases' were merged.
    database: AtomicU32,
}

impl Default for SlotTransactions {
    fn default() -> Self {
        Self {
            bound: AtomicI64::new(NONE),
            database: AtomicU32::new(0),
            changes: AtomicU32::new(0),
            count: AtomicU32::new(0),
            merged: AtomicU32::new(0),
            ended: Default::default(),
        }
    }
}

impl SlotTransactions {
    /// Begins to work for another owner of the slot, whose session is in this database.
    pub fn begin(&self, database: u32) {
        self.database.store(database, Ordering::Release);
    }

    /// Admits IDs of ticks that end after `now`, which has to be a fresh reading of the clock: publishes it as the bound
    /// of the current transaction, unless that is lower, calls `published`, and sees what was announced.
    ///
    /// # Errors
    /// The instant to wait for: such an ID could lie below a horizon.
    #[inline]
    pub fn admit(&self, announced: &AtomicI64, now: i64, published: impl FnOnce()) -> Result<(), i64> {
        let known = announced.load(Ordering::Acquire);
        if now < known {
            return Err(known);
        }
        self.hold(announced, now, published)
    }

    /// Makes the current transaction hold horizons at an instant or below; calls `published` before it looks at what was announced.
    ///
    /// # Errors
    /// A later instant that has been announced already; nothing has changed then.
    #[inline]
    pub fn hold(&self, announced: &AtomicI64, instant: i64, published: impl FnOnce()) -> Result<(), i64> {
        let before = self.bound.load(Ordering::Relaxed);
        self.bound.store(before.min(instant), Ordering::Release);
        fence(Ordering::SeqCst);
        published();
        let known = announced.load(Ordering::SeqCst);
        if known > instant {
            self.bound.store(before, Ordering::Release);
            return Err(known);
        }
        Ok(())
    }

    /// Returns the bound of the current transaction, or [`NONE`].
    #[inline]
    pub fn bound(&self) -> i64 {
        self.bound.load(Ordering::Acquire)
    }

    /// Returns the database of the slot's owner.
    pub fn database(&self) -> u32 {
        self.database.load(Ordering::Acquire)
    }

    /// Ends the current transaction, which new snapshots have to see as ended by now. `committed` is its number if it has
    /// committed and has one. Calls `kept` between the two steps.
    #[inline]
    pub fn end(&self, committed: Option<u64>, kept: impl FnOnce()) {
        let bound = self.bound.load(Ordering::Relaxed);
        if bound == NONE {
            return;
        }
        if let Some(xid) = committed {
            self.keep(xid, bound);
        }
        kept();
        self.bound.store(NONE, Ordering::Release);
    }

    /// Remembers a transaction that has ended.
    fn keep(&self, xid: u64, bound: i64) {
        let database = self.database.load(Ordering::Relaxed);
        let newest = &self.ended[0];
        // In a busy session, one store.
        if self.count.load(Ordering::Relaxed) > 0
            && newest.database.load(Ordering::Relaxed) == database
            && (0..NEAR).contains(&bound.wrapping_sub(newest.bound.load(Ordering::Relaxed)))
        {
            newest.xid.store(xid, Ordering::Release);
            return;
        }
        let changes = self.changes.load(Ordering::Relaxed);
        self.changes.store(changes.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        let gap = self.make_room();
        for at in (0..gap).rev() {
            self.ended[at + 1].copy_from(&self.ended[at]);
        }
        newest.xid.store(xid, Ordering::Relaxed);
        newest.bound.store(bound, Ordering::Relaxed);
        newest.database.store(database, Ordering::Relaxed);
        self.changes.store(changes.wrapping_add(2), Ordering::Release);
    }

    /// Returns the index of an entry that is free, after merging two neighbors if none was.
    fn make_room(&self) -> usize {
        let count = self.count.load(Ordering::Relaxed) as usize;
        if count < KEPT {
            self.count.store(count as u32 + 1, Ordering::Relaxed);
            return count;
        }
        let merged = self.merged.load(Ordering::Relaxed).wrapping_add(1);
        self.merged.store(merged, Ordering::Relaxed);
        let at = (EXACT + merged.trailing_zeros() as usize).min(KEPT - 2);
        let (newer, older) = (&self.ended[at], &self.ended[at + 1]);
        let lower = newer.bound.load(Ordering::Relaxed).min(older.bound.load(Ordering::Relaxed));
        newer.bound.store(lower, Ordering::Relaxed);
        if newer.database.load(Ordering::Relaxed) != older.database.load(Ordering::Relaxed) {
            newer.database.store(0, Ordering::Relaxed);
        }
        at + 1
    }

    /// Returns at which instant the slot's transactions hold the horizon of a snapshot in a database, or [`NONE`]. The
    /// clock has to be announced before. Returns no answer if the slot's owner interferes for long, because it was stopped.
    pub fn holds(&self, snapshot: &Snapshot<'_>, database: u32) -> Option<i64> {
        for _ in 0..ATTEMPTS {
            // In this order: a transaction that has ended meanwhile is among the others.
            let present = self.bound();
            let is_present_ours = self.database() == database;
            let before = self.changes.load(Ordering::Acquire);
            let ended = self.ended_bound(snapshot, database);
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.changes.load(Ordering::Relaxed) == before {
                return Some(if is_present_ours { present.min(ended) } else { ended });
            }
            spin_loop();
        }
        None
    }

    /// Returns the least bound of those that have ended, but not for the snapshot.
    fn ended_bound(&self, snapshot: &Snapshot<'_>, database: u32) -> i64 {
        let count = (self.count.load(Ordering::Relaxed) as usize).min(KEPT);
        // They ended one after the other: those behind the first that has ended for the snapshot have ended too.
        let not_ended =
            self.ended[..count].iter().take_while(|ended| snapshot.is_running(ended.xid.load(Ordering::Relaxed)));
        not_ended
            .filter(|ended| [0, database].contains(&ended.database.load(Ordering::Relaxed)))
            .map(|ended| ended.bound.load(Ordering::Relaxed))
            .min()
            .unwrap_or(NONE)
    }
}

impl Ended {
    fn copy_from(&self, other: &Self) {
        self.xid.store(other.xid.load(Ordering::Relaxed), Ordering::Relaxed);
        self.bound.store(other.bound.load(Ordering::Relaxed), Ordering::Relaxed);
        self.database.store(other.database.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}
