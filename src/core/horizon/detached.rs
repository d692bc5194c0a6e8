//! Transactions that hold horizons without a slot that says so: prepared ones, and those whose parallel workers have made
//! IDs, as the session that they work for may not know.

use super::{NONE, Snapshot};

/// A transaction without a slot of its own.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Detached {
    /// How to tell whether it has ended.
    pub identity: Identity,
    /// All its IDs lie in ticks that end after this instant.
    pub bound: i64,
    /// Its database; 0 for several.
    pub database: u32,
}

/// What identifies a transaction.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Identity {
    /// None: a free entry.
    #[default]
    Free,
    /// Its number.
    Xid(u64),
    /// Its session's slot, and its number among those of the slot. It had no other.
    Local {
        /// The slot.
        slot: u32,
        /// The number.
        number: u32,
    },
    /// Transactions before `next`, which have left their sessions. A snapshot whose `xmax` is greater sees them as ended.
    Ended {
        /// A number that no transaction had when they left.
        next: u64,
        /// One more than the greatest number of a transaction that had ended by then; or the greatest of all, if they may
        /// have been prepared.
        xmax: u64,
    },
}

/// What is known of transactions elsewhere.
pub trait Transactions {
    /// Returns whether the transaction with a number has not ended.
    fn is_running(&self, xid: u64) -> bool;
    /// Returns whether the transaction with a number in a slot has not left it.
    fn is_in_slot(&self, slot: u32, number: u32) -> bool;
    /// Returns a number that no transaction has yet.
    fn next(&self) -> u64;
    /// Returns the greatest number of a transaction that has ended.
    fn latest_ended(&self) -> u64;
    /// Returns a number such that all snapshots see the transactions before it as ended.
    fn oldest(&self) -> u64;
}

impl Detached {
    /// Returns at which instant it holds the horizon of a snapshot in a database, or [`NONE`]. Whether a transaction has left
    /// its slot is found out by [`settle`].
    fn holds(&self, snapshot: &Snapshot<'_>, database: u32) -> i64 {
        let is_running = match self.identity {
            Identity::Free => false,
            Identity::Xid(xid) => snapshot.is_running(xid),
            Identity::Local { .. } => true,
            Identity::Ended { next, xmax } => snapshot.xmin < next && snapshot.xmax <= xmax,
        };
        if is_running && [0, database].contains(&self.database) { self.bound } else { NONE }
    }
}

/// Returns the least bound of those that have not ended for a snapshot in a database, or [`NONE`].
pub fn holds(all: &[Detached], snapshot: &Snapshot<'_>, database: u32) -> i64 {
    all.iter().map(|detached| detached.holds(snapshot, database)).min().unwrap_or(NONE)
}

/// Finds out which of those that only their slots know have left them.
pub fn settle(all: &mut [Detached], known: &impl Transactions) {
    for detached in all {
        if let Identity::Local { slot, number } = detached.identity
            && !known.is_in_slot(slot, number)
        {
            detached.identity = Identity::Ended { next: known.next(), xmax: u64::MAX };
        }
    }
}

/// Adds a transaction, or lowers the bound of the one that is there. Returns its index; none if there is no room, because all
/// are running.
pub fn add(all: &mut [Detached], new: Detached, known: &impl Transactions) -> Option<usize> {
    let find = |all: &[Detached], identity| all.iter().position(|detached| detached.identity == identity);
    if let Some(present) = find(all, new.identity) {
        all[present].bound = all[present].bound.min(new.bound);
        return Some(present);
    }
    if find(all, Identity::Free).is_none() {
        settle(all, known);
        forget(all, known.oldest());
    }
    if find(all, Identity::Free).is_none() {
        merge_ended(all, known);
    }
    let free = find(all, Identity::Free)?;
    all[free] = new;
    Some(free)
}

/// Forgets those that have ended for all snapshots.
fn forget(all: &mut [Detached], oldest: u64) {
    for detached in all {
        let is_over = match detached.identity {
            Identity::Xid(xid) => xid < oldest,
            Identity::Ended { next, .. } => next <= oldest,
            Identity::Free | Identity::Local { .. } => false,
        };
        if is_over {
            *detached = Detached::default();
        }
    }
}

/// Merges those that have ended, which then hold the horizons of more snapshots than they have to.
fn merge_ended(all: &mut [Detached], known: &impl Transactions) {
    let none = Detached { identity: Identity::Free, bound: NONE, database: 0 };
    // Those of which it is known that they were not prepared, and the others.
    let (mut ended, mut left) = (none, none);
    for detached in all.iter_mut() {
        let merged = match detached.identity {
            Identity::Xid(xid) if !known.is_running(xid) => &mut ended,
            Identity::Ended { xmax, .. } if xmax < u64::MAX => &mut ended,
            Identity::Ended { .. } => &mut left,
            _ => continue,
        };
        merged.bound = merged.bound.min(detached.bound);
        *detached = Detached::default();
    }
    // Read after they had ended.
    let (next, xmax) = (known.next(), known.latest_ended() + 1);
    ended.identity = Identity::Ended { next, xmax };
    left.identity = Identity::Ended { next, xmax: u64::MAX };
    for merged in [ended, left] {
        if merged.bound != NONE
            && let Some(free) = all.iter_mut().find(|detached| detached.identity == Identity::Free)
        {
            *free = merged;
        }
    }
}
