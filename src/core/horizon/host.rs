//! The services of a server that horizons need besides those that the ledger needs.

use std::sync::atomic::{AtomicBool, AtomicU32};

use super::prepared::{Prepared, Transactions};
use super::{SlotTransactions, Snapshot};
use crate::ledger::host::Host;

/// Why there is no horizon now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The snapshot may not see what was prepared before the server started, and was committed since.
    #[error("horizon is not known yet")]
    NotYet,
    /// Some sessions do not say at which instants they hold horizons.
    #[error("there is no horizon because sessions have used another version of the flake library")]
    OtherVersion,
}

/// How the prepared transactions are kept.
#[repr(C)]
#[derive(Debug, Default)]
pub struct PreparedUse {
    /// How many entries there may be.
    pub entries: AtomicU32,
    /// Whether those are known that were prepared before the server started.
    pub are_known: AtomicBool,
}

/// The snapshot that a query reads by.
pub trait QuerySnapshot {
    /// Returns which transactions it sees as running.
    fn transactions(&self) -> Snapshot<'_>;
    /// Returns the instant that was noted on it.
    fn note(&self) -> Option<i64>;
    /// Notes an instant on it. A snapshot has one horizon.
    fn set_note(&self, instant: i64);
    /// Returns whether all statements of its transaction read by it, or by copies of it.
    fn is_of_transaction(&self) -> bool;
}

/// A session that makes IDs, asks for horizons, or both.
pub trait HorizonHost: Host<Error: From<Refusal>> {
    /// The number of the session's database, which is not 0.
    fn database(&self) -> u32;
    /// The transactions of this session's slot.
    fn own(&self) -> Option<&SlotTransactions>;
    /// The transactions of all slots.
    fn slots(&self) -> impl Iterator<Item = &SlotTransactions>;
    /// Waits for a session that was stopped at an unlucky moment. It can be canceled.
    fn nap(&self);
    /// Whether all sessions say at which instants they hold horizons.
    fn all_take_part(&self) -> bool;
    /// How many transactions can be prepared at once; there are entries for twice as many, one for each slot, and one more.
    fn most_prepared(&self) -> usize;
    /// How they are kept.
    fn prepared_use(&self) -> &PreparedUse;
    /// Acts on the entries of prepared transactions, under their lock.
    fn prepared<R>(&self, act: impl FnOnce(&mut [Prepared]) -> R) -> R;
    /// The transactions as the server knows them.
    fn known(&self) -> impl Transactions;
    /// Returns whether a transaction that has ended has committed.
    fn has_committed(&self, xid: u64) -> bool;
    /// Assigns a transaction ID and aborts it; the WAL has the abort before what this session writes next. It may raise an error.
    fn use_up_a_number(&mut self);
    /// Attaches an instant to the current transaction, which is about to be prepared: the server keeps both through restarts, until
    /// the transaction ends. It may raise an error.
    fn carry(&self, xid: u64, bound: i64);
    /// Returns what transactions carry, with the lower 32 bits of their numbers.
    fn carried(&self) -> Vec<(u32, i64)>;
    /// Returns the database of a prepared transaction; 0 if it has ended.
    fn database_of(&self, xid: u32) -> u32;
}
