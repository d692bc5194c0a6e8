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
    /// Its session's slot, and its number among those of the slot. It may have no other.
    Local {
        /// The slot.
        slot: u32,
        /// The number.
        number: u32,
    },
    /// Several that ended before this one began.
    EndedBefore(u64),
}

impl Detached {
    /// Returns at which instant it holds the horizon of a snapshot in a database, or [`NONE`]. A transaction that only its
    /// slot knows has to be looked after with [`settle`] before.
    fn holds(&self, snapshot: &Snapshot<'_>, database: u32) -> i64 {
        let is_running = match self.identity {
            Identity::Free => false,
            Identity::Xid(xid) => snapshot.is_running(xid),
            Identity::Local { .. } => true,
            Identity::EndedBefore(next) => snapshot.xmin < next,
        };
        if is_running && [0, database].contains(&self.database) { self.bound } else { NONE }
    }
}

/// Returns the least bound of those that have not ended for a snapshot in a database, or [`NONE`].
pub fn holds(all: &[Detached], snapshot: &Snapshot<'_>, database: u32) -> i64 {
    all.iter().map(|detached| detached.holds(snapshot, database)).min().unwrap_or(NONE)
}

/// Finds out which of those that only their slots know have ended. `next` is a number that no transaction has yet, read
/// after that.
pub fn settle(all: &mut [Detached], mut is_running: impl FnMut(u32, u32) -> bool, next: impl FnOnce() -> u64) {
    let mut next_of = None;
    let mut next = Some(next);
    for detached in all {
        if let Identity::Local { slot, number } = detached.identity
            && !is_running(slot, number)
        {
            let next = *next_of.get_or_insert_with(|| next.take().map_or(0, |next| next()));
            detached.identity = Identity::EndedBefore(next);
        }
    }
}

/// Adds a transaction, or lowers the bound of the one that is there. `oldest` is a number such that all snapshots see the
/// transactions before it as ended; `is_running` says whether the transaction with a number has not ended yet. Both are asked
/// only if there is no room. Returns its index; none if there is no room.
pub fn add(
    all: &mut [Detached],
    new: Detached,
    oldest: impl FnOnce() -> u64,
    mut is_running: impl FnMut(u64) -> bool,
    next: u64,
) -> Option<usize> {
    let find = |all: &[Detached], identity| all.iter().position(|detached| detached.identity == identity);
    if let Some(known) = find(all, new.identity) {
        all[known].bound = all[known].bound.min(new.bound);
        return Some(known);
    }
    if find(all, Identity::Free).is_none() {
        forget(all, oldest());
    }
    if find(all, Identity::Free).is_none() {
        merge_ended(all, &mut is_running, next);
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
            Identity::EndedBefore(next) => next <= oldest,
            Identity::Free | Identity::Local { .. } => false,
        };
        if is_over {
            *detached = Detached::default();
        }
    }
}

/// Merges those that have ended into one, which holds the horizons of more snapshots than it has to.
fn merge_ended(all: &mut [Detached], is_running: &mut impl FnMut(u64) -> bool, next: u64) {
    let mut merged = Detached { identity: Identity::EndedBefore(next), bound: NONE, database: 0 };
    for detached in all.iter_mut() {
        let has_ended = match detached.identity {
            Identity::Xid(xid) => !is_running(xid),
            Identity::EndedBefore(_) => true,
            Identity::Free | Identity::Local { .. } => false,
        };
        if has_ended {
            merged.bound = merged.bound.min(detached.bound);
            *detached = Detached::default();
        }
    }
    if merged.bound != NONE
        && let Some(free) = all.iter_mut().find(|detached| detached.identity == Identity::Free)
    {
        *free = merged;
    }
}
