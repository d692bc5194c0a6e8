//! The services that watermarks need of a server, in addition to the services for the ledger.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::prepared::{self, Prepared, Transactions};
use super::{ProcTransactions, Snapshot};
use crate::ledger::host::Host;

/// Why there is no watermark now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The snapshot may miss a transaction that was prepared before the server started and has committed since.
    #[error("watermark is not known yet")]
    NotYet,
}

/// The state of the entries of prepared transactions.
#[repr(C)]
#[derive(Debug, Default)]
pub struct PreparedUse {
    /// How many entries may be in use.
    pub entries: AtomicU32,
    /// Whether the transactions that were prepared before the server started have been learned.
    pub are_known: AtomicBool,
}

/// The snapshot of a query.
pub trait QuerySnapshot {
    /// Returns the transactions that it sees as running.
    fn transactions(&self) -> Snapshot<'_>;
    /// Returns its watermark, if it has one already.
    fn cached_watermark(&self) -> Option<i64>;
    /// Stores its watermark. A snapshot has one watermark.
    fn cache_watermark(&self, instant: i64);
    /// Returns whether all statements of its transaction use it or copies of it.
    fn is_of_transaction(&self) -> bool;
}

/// A session that makes IDs, asks for watermarks, or both.
pub trait WatermarkHost: Host<Error: From<Refusal>> {
    /// The number of the session's database, which is not 0.
    fn database(&self) -> u32;
    /// The transactions of this session's proc.
    fn own(&self) -> &ProcTransactions;
    /// The transactions of all procs.
    fn procs(&self) -> impl Iterator<Item = &ProcTransactions>;
    /// Waits for a session that was stopped in the middle of a change. The wait can be canceled.
    fn nap(&self);
    /// How many transactions can be prepared at once. There are twice as many entries, one for each proc, and one more.
    fn most_prepared(&self) -> usize;
    /// The state of these entries.
    fn prepared_use(&self) -> &PreparedUse;
    /// Calls `act` with the entries of prepared transactions, under their lock.
    fn prepared<R>(&self, act: impl FnOnce(&mut [Prepared]) -> R) -> R;
    /// The server's view of transactions.
    fn known(&self) -> impl Transactions;
    /// Returns whether an ended transaction has committed.
    fn has_committed(&self, xid: u64) -> bool;
    /// Assigns a transaction ID and aborts it. The WAL has the abort before anything that this session writes next. It may raise an
    /// error.
    fn consume_xid(&mut self);
    /// Attaches an instant to the current transaction, which is about to be prepared. The server keeps it across restarts until the
    /// transaction ends. It may raise an error.
    fn carry(&self, xid: u64, bound: i64);
    /// Returns the attached instants, with the lower 32 bits of the transaction IDs.
    fn carried(&self) -> Vec<(u32, i64)>;
    /// Returns the database of a prepared transaction; 0 if it has ended.
    fn database_of(&self, xid: u32) -> u32;

    /// Calls `act` with the entries of prepared transactions that may be in use, if there are any.
    fn with_prepared<R>(&self, act: impl FnOnce(&[Prepared]) -> R) -> Option<R> {
        let entries = &self.prepared_use().entries;
        if entries.load(Ordering::SeqCst) == 0 {
            return None;
        }
        Some(self.prepared(|all| act(&all[..entries.load(Ordering::SeqCst) as usize])))
    }

    /// Adds prepared transactions to the entries.
    fn add_prepared(&self, new: &[Prepared]) {
        self.prepared(|all| {
            for &one in new {
                let at = prepared::add(all, one, &self.known()) as u32;
                self.prepared_use().entries.fetch_max(at + 1, Ordering::SeqCst);
            }
        });
    }
}
