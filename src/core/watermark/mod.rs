//! Watermarks: instants below which no row can appear any more in what a snapshot sees.
//!
//! The problem: a consumer reads a table in the order of IDs and remembers how far it got. A transaction that is still open may
//! later show a row with a lower ID. So a transaction *holds* watermarks at its bound until it has ended for the snapshot; all its
//! IDs lie in ticks that end after the bound.
//!
//! A transaction may make its first ID while a session asks for a watermark. Neither takes a lock, so each writes before it reads:
//!
//! 6. A transaction publishes its bound, then reads what was announced, and makes no ID in a tick that has ended by then. A session that
//!    asks *announces* flake's time, in the generation of its reading, then reads the bounds of all transactions. Both have a full
//!    fence between the two steps, so if they meet, at least one of them sees what the other has written. If no time is granted, the
//!    clock is announced.

pub mod ask;
pub mod host;
pub mod prepared;
pub mod published;
pub mod transactions;

use std::ops::RangeInclusive;

use crate::instant::NEVER;
use crate::sync::{AtomicI64, AtomicU32, AtomicU64, Ordering, fence, spin_loop};

/// The bound of a transaction that has made no ID.
pub const NONE: i64 = NEVER;
/// How many ended transactions a proc remembers.
const MAX_ENDED: usize = if cfg!(loom) { 3 } else { 16 };
/// How many of them keep an entry of their own. Neighbors among the older ones are merged, the oldest most often.
const EXACT: usize = if cfg!(loom) { 0 } else { 4 };
/// Transactions whose bounds are this close, in microseconds, share an entry.
const NEAR_MICROS: i64 = 1000;
/// How often a reader retries. If the owner of the proc is running, it finishes its change within a few retries.
const MAX_ATTEMPTS: usize = if cfg!(loom) { 1 } else { 1000 };

/// The transactions that a snapshot sees as running. Transaction IDs have 64 bits here, so they do not wrap around.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Snapshot<'a> {
    /// All transactions before this one have ended.
    pub xmin: u64,
    /// This transaction and all later ones are running.
    pub xmax: u64,
    /// The lower 32 bits of the running transactions in between.
    pub running: &'a [u32],
}

impl<'a> Snapshot<'a> {
    /// Creates a snapshot from PostgreSQL's 32-bit transaction IDs. `next` is an ID that has not been assigned yet.
    pub const fn new(next: u64, xmin: u32, xmax: u32, running: &'a [u32]) -> Self {
        Self { xmin: widened(next, xmin), xmax: widened(next, xmax), running }
    }

    /// Returns the listed running transactions before `xid`. Transactions from `xmax` on are not listed.
    pub fn running_before(&self, xid: u64) -> impl Iterator<Item = u64> {
        self.running.iter().map(|&running| widened(self.xmax, running)).filter(move |&running| running < xid)
    }

    /// Returns whether a transaction is running.
    pub fn is_running(&self, xid: u64) -> bool {
        xid >= self.xmin && (xid >= self.xmax || self.running.contains(&(xid as u32)))
    }

    /// Returns whether any transaction of a range is running.
    pub fn is_any_running(&self, xids: RangeInclusive<u64>) -> bool {
        let last = *xids.end();
        last >= self.xmin && (last >= self.xmax || self.running_before(self.xmax).any(|xid| xids.contains(&xid)))
    }
}

/// Returns the 64-bit ID of a transaction that is at most 2^31 transactions old.
pub const fn widened(next: u64, xid: u32) -> u64 {
    next - (next as u32).wrapping_sub(xid) as u64
}

/// The transactions of one proc: the current one, and some that have ended lately. They are in shared memory, and only the proc's
/// owner changes them.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ProcTransactions {
    /// The bound of the current transaction.
    bound: AtomicI64,
    /// The database of the proc's owner.
    database: AtomicU32,
    /// Odd while `ended` changes.
    changes: AtomicU32,
    count: AtomicU32,
    merged: AtomicU32,
    /// The newest first.
    ended: [Ended; MAX_ENDED],
}

/// An ended transaction, or several in a row: the ID of the newest and the lowest bound. A snapshot that sees the newest sees the
/// others.
#[repr(C)]
#[derive(Debug, Default)]
struct Ended {
    xid: AtomicU64,
    bound: AtomicI64,
    /// 0 after entries of several databases were merged.
    database: AtomicU32,
}

impl Default for ProcTransactions {
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

impl ProcTransactions {
    /// Begins for a new owner of the proc, whose session is connected to this database.
    pub fn begin(&self, database: u32) {
        self.database.store(database, Ordering::Release);
    }

    /// Lets the current transaction make IDs of ticks that end after `now`, a fresh reading of flake's time: publishes `now` as its
    /// bound unless that is lower, calls `published`, and reads what was announced.
    ///
    /// # Errors
    /// The announced watermark, because such an ID could lie below it.
    #[inline]
    pub fn admit(&self, announced: &AtomicI64, now: i64, published: impl FnOnce()) -> Result<(), i64> {
        let known = announced.load(Ordering::Acquire);
        if now < known {
            return Err(known);
        }
        self.hold(announced, now, published)
    }

    /// Makes the current transaction hold watermarks at an instant or below. Calls `published` before it reads what was announced.
    ///
    /// # Errors
    /// A later instant that has been announced already. Nothing has changed then.
    #[inline]
    pub fn hold(&self, announced: &AtomicI64, instant: i64, published: impl FnOnce()) -> Result<(), i64> {
        debug_assert!(instant != NONE, "an instant");
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

    /// Returns the database of the proc's owner.
    pub fn database(&self) -> u32 {
        self.database.load(Ordering::Acquire)
    }

    /// Ends the current transaction. New snapshots must see it as ended by now. `committed` is its ID if it has one and has
    /// committed. Calls `kept` between the two steps.
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

    /// Adds a transaction that has ended.
    fn keep(&self, xid: u64, bound: i64) {
        let database = self.database.load(Ordering::Relaxed);
        let newest = &self.ended[0];
        debug_assert!(
            self.count.load(Ordering::Relaxed) == 0 || newest.xid.load(Ordering::Relaxed) < xid,
            "the transactions of a session end one after another"
        );
        // In a busy session this is a single store.
        if self.count.load(Ordering::Relaxed) > 0
            && newest.database.load(Ordering::Relaxed) == database
            && (0..NEAR_MICROS).contains(&bound.wrapping_sub(newest.bound.load(Ordering::Relaxed)))
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

    /// Returns the index of a free entry, after merging two neighbors if there was none.
    fn make_room(&self) -> usize {
        let count = self.count.load(Ordering::Relaxed) as usize;
        if count < MAX_ENDED {
            self.count.store(count as u32 + 1, Ordering::Relaxed);
            return count;
        }
        let merged = self.merged.load(Ordering::Relaxed).wrapping_add(1);
        self.merged.store(merged, Ordering::Relaxed);
        let at = (EXACT + merged.trailing_zeros() as usize).min(MAX_ENDED - 2);
        let (newer, older) = (&self.ended[at], &self.ended[at + 1]);
        let lower = newer.bound.load(Ordering::Relaxed).min(older.bound.load(Ordering::Relaxed));
        newer.bound.store(lower, Ordering::Relaxed);
        if newer.database.load(Ordering::Relaxed) != older.database.load(Ordering::Relaxed) {
            newer.database.store(0, Ordering::Relaxed);
        }
        at + 1
    }

    /// Returns the instant at which the proc's transactions hold a watermark in this database, or [`NONE`]. The clock must have been
    /// announced. Returns None if all retries failed because the proc's owner was stopped in a change.
    pub fn holds(&self, snapshot: &Snapshot<'_>, database: u32) -> Option<i64> {
        for _ in 0..MAX_ATTEMPTS {
            // The current transaction is read first: if it ends meanwhile, it is found among the ended ones.
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

    /// Returns the lowest bound of the ended transactions that the snapshot sees as running.
    fn ended_bound(&self, snapshot: &Snapshot<'_>, database: u32) -> i64 {
        let count = (self.count.load(Ordering::Relaxed) as usize).min(MAX_ENDED);
        // They ended one after another, so all entries behind the first one that the snapshot sees as ended have ended too.
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
