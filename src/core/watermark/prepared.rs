//! Prepared transactions: they hold watermarks although they have left their proc.

use super::{NONE, Snapshot};

/// A transaction that may be prepared or has ended, or several ended ones that share an entry.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prepared {
    /// The transaction ID, or the lowest of several; 0 in a free entry.
    first: u64,
    /// The transaction ID, or the highest of several.
    last: u64,
    /// Snapshots with a greater `xmax` see it as ended.
    seen_before: u64,
    /// All its IDs lie in ticks that end after this instant.
    pub bound: i64,
    /// Its database; 0 for several databases.
    pub database: u32,
}

/// The server's view of transactions.
pub trait Transactions {
    /// Returns whether a transaction is running.
    fn is_running(&self, xid: u64) -> bool;
    /// Returns the highest transaction ID that has ended.
    fn latest_ended(&self) -> u64;
    /// Returns a transaction ID: all snapshots see the transactions before it as ended.
    fn oldest_xmin(&self) -> u64;
}

impl Prepared {
    /// Creates the entry of a running transaction.
    pub const fn new(xid: u64, bound: i64, database: u32) -> Self {
        Self { first: xid, last: xid, seen_before: u64::MAX, bound, database }
    }

    /// Returns the ID of a single transaction; None for a free entry or for several transactions.
    pub fn xid(&self) -> Option<u64> {
        (self.last != 0 && self.first == self.last).then_some(self.first)
    }

    fn is_free(&self) -> bool {
        self.last == 0
    }

    fn has_ended(&self) -> bool {
        self.seen_before < u64::MAX && !self.is_free()
    }

    /// Returns the instant at which it holds a watermark of a snapshot in a database, or [`NONE`].
    fn holds(&self, snapshot: &Snapshot<'_>, database: u32) -> i64 {
        let is_running =
            !self.is_free() && snapshot.xmax <= self.seen_before && snapshot.is_any_running(self.first..=self.last);
        if is_running && [0, database].contains(&self.database) { self.bound } else { NONE }
    }

    /// Returns one entry for two. It may hold the watermarks of more snapshots than the two did.
    fn merged(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            seen_before: self.seen_before.max(other.seen_before),
            bound: self.bound.min(other.bound),
            database: if self.database == other.database { self.database } else { 0 },
        }
    }
}

/// Returns the lowest bound of the transactions that a snapshot sees as running, or [`NONE`].
pub fn holds(all: &[Prepared], snapshot: &Snapshot<'_>, database: u32) -> i64 {
    all.iter().map(|one| one.holds(snapshot, database)).min().unwrap_or(NONE)
}

/// Adds a transaction unless it is there already. Returns its index. There must be room for all that are running at once, and one
/// more.
pub fn add(all: &mut [Prepared], new: Prepared, known: &impl Transactions) -> usize {
    if let Some(present) = all.iter().position(|one| one.xid() == new.xid()) {
        return present;
    }
    let free = |all: &[Prepared]| all.iter().position(Prepared::is_free);
    let at = free(all)
        .or_else(|| {
            forget_ended(all, known);
            free(all)
        })
        .or_else(|| {
            // Entries of one database are merged first, so that they do not hold watermarks of another one.
            merge_ended(all, |one, other| one.database == other.database);
            free(all)
        })
        .or_else(|| {
            merge_ended(all, |_, _| true);
            free(all)
        });
    let Some(at) = at else { unreachable!("there is room for all that are running") };
    all[at] = new;
    at
}

/// Marks the transactions that have ended, and frees the entries that all snapshots see as ended.
fn forget_ended(all: &mut [Prepared], known: &impl Transactions) {
    let oldest = known.oldest_xmin();
    for one in all.iter_mut().filter(|one| !one.is_free()) {
        if one.last < oldest {
            *one = Prepared::default();
        } else if !one.has_ended() && !known.is_running(one.first) {
            // This is read after the transaction has ended.
            one.seen_before = known.latest_ended() + 1;
            debug_assert!(one.first < one.seen_before, "it is among those that have ended");
        }
    }
}

/// Merges ended transactions that `are_together`.
fn merge_ended(all: &mut [Prepared], are_together: impl Fn(&Prepared, &Prepared) -> bool) {
    for at in 0..all.len() {
        let one = all[at];
        let joins = |other: &Prepared| one.has_ended() && other.has_ended() && are_together(&one, other);
        if let Some(other) = all[..at].iter_mut().find(|other| joins(other)) {
            *other = other.merged(one);
            all[at] = Prepared::default();
        }
    }
}
