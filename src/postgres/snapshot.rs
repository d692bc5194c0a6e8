//! The snapshot of the current query.
#![allow(unsafe_code, reason = "PostgreSQL's snapshots")]

use flake_core::watermark::{Snapshot, host};
use pgrx::pg_sys;

use super::transaction::{has_one_snapshot, next_xid};

/// Marks a snapshot that contains a note.
const STAMP: u32 = 0x464c_4b48;

/// The snapshot of the current query.
pub struct QuerySnapshot(*mut pg_sys::SnapshotData);

/// Returns the current query's snapshot, or None if it has none, or one that is not an ordinary MVCC snapshot.
pub fn of_query() -> Option<QuerySnapshot> {
    // SAFETY: the active snapshot lives as long as it is active.
    unsafe {
        if !pg_sys::ActiveSnapshotSet() {
            return None;
        }
        let snapshot = pg_sys::GetActiveSnapshot();
        let is_usual = (*snapshot).snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC && (*snapshot).copied;
        is_usual.then_some(QuerySnapshot(snapshot))
    }
}

impl QuerySnapshot {
    /// Returns the instant that is noted in the snapshot, after storing a new one if one is given.
    ///
    /// The note must be a part of the snapshot, because on an idle server, two equal snapshots can belong to different instants. It
    /// is stored in two fields that PostgreSQL uses in other kinds of snapshots only: `speculativeToken` of SNAPSHOT_DIRTY, and
    /// `vistest` of SNAPSHOT_NON_VACUUMABLE. They are copied and freed with the snapshot. `tests/server/test_watermark_statements.py`
    /// checks that for the PostgreSQL at hand.
    fn noted(&self, instant: Option<i64>) -> Option<i64> {
        // SAFETY: the snapshot is active; it is this process's own.
        let snapshot = unsafe { &mut *self.0 };
        if let Some(instant) = instant {
            snapshot.vistest = instant as *mut pg_sys::GlobalVisState;
            snapshot.speculativeToken = STAMP;
        }
        (snapshot.speculativeToken == STAMP).then_some(snapshot.vistest as i64)
    }

    /// Returns whether it was taken on a standby. Such a snapshot has no list of running transactions, unless a replication slot
    /// has exported it. Then it does not say where it was taken, but its transaction began on the standby.
    pub fn is_of_recovery(&self) -> bool {
        // SAFETY: the snapshot is active, and this is a transaction.
        unsafe { (*self.0).takenDuringRecovery || has_one_snapshot() && pg_sys::TransactionStartedDuringRecovery() }
    }
}

/// A snapshot taken now, which is active until this is dropped.
pub struct LatestSnapshot;

impl LatestSnapshot {
    /// Takes the snapshot.
    pub fn take() -> Self {
        // SAFETY: this is a transaction. The snapshot is popped again, by this code or after an error by PostgreSQL.
        unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot()) };
        Self
    }
}

impl Drop for LatestSnapshot {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: everything that was pushed after it was popped.
            unsafe { pg_sys::PopActiveSnapshot() };
        }
    }
}

impl host::QuerySnapshot for QuerySnapshot {
    fn transactions(&self) -> Snapshot<'_> {
        // SAFETY: the snapshot is active, and `xip` has `xcnt` elements of 32 bits.
        unsafe {
            let snapshot = &*self.0;
            let running: &[u32] = match snapshot.xcnt {
                0 => &[],
                count => std::slice::from_raw_parts(snapshot.xip.cast::<u32>(), count as usize),
            };
            Snapshot::new(next_xid(), snapshot.xmin.into(), snapshot.xmax.into(), running)
        }
    }

    /// The actions of foreign keys use newer snapshots in between.
    fn is_of_transaction(&self) -> bool {
        if !has_one_snapshot() {
            return false;
        }
        // SAFETY: such a transaction has its snapshot by now, and only gets it returned again.
        let of_transaction = unsafe { Self(pg_sys::GetTransactionSnapshot()) };
        self.transactions() == of_transaction.transactions()
    }

    fn cached_watermark(&self) -> Option<i64> {
        self.noted(None)
    }

    fn cache_watermark(&self, instant: i64) {
        self.noted(Some(instant));
    }
}
