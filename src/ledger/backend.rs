//! PostgreSQL as the host of the protocol: this process is one of the sessions of its server.
#![allow(unsafe_code, reason = "the progress of this session's slot in shared memory")]

use std::ops::Deref;
use std::sync::atomic::Ordering;

use flake_core::horizon::SlotTransactions;
use flake_core::horizon::host::{HorizonHost, PreparedUse};
use flake_core::horizon::prepared::{Prepared, Transactions};
use flake_core::ledger::host::{Change, Host, Page, Server, Shared, SlotOwner, State, Timeline, Writer};
use flake_core::ledger::line::Line;
use flake_core::ledger::note::NOTE;
use flake_core::{Node, SlotProgress};

use super::mark::{file, page};
use super::memory::{Memory, SlotMemory, attach};
use super::node::node;
use super::turn;
use crate::clock;
use crate::error::Error;
use crate::postgres::lock::Guard;
use crate::postgres::random::random;
use crate::postgres::report;
use crate::postgres::timestamptz::to_text;
use crate::postgres::{prepared, recovery, slot, stall, transaction};

/// This process.
#[derive(Clone, Copy)]
pub struct Backend<S = ()> {
    memory: &'static Memory,
    node: Node,
    slot: S,
}

/// This process as the owner of its slot, which only a session has that makes IDs or asks for horizons.
pub type Member = Backend<&'static SlotMemory>;

impl Backend {
    /// Finds the ledger.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { memory: attach()?, node: node()?, slot: () })
    }

    /// Finds the memory of this process's slot.
    pub fn member(self) -> Member {
        let Self { memory, node, .. } = self;
        Backend { memory, node, slot: &memory.slots[slot::numbers().0 as usize] }
    }
}

impl<S: Copy> Backend<S> {
    /// The current era.
    #[inline]
    pub fn era(&self) -> u64 {
        self.memory.control.shared.window.era()
    }

    fn right(&self, guard: Guard<'static, ()>) -> FileWriter {
        stall::at("FlakeMark");
        FileWriter { _guard: guard, backend: Backend { memory: self.memory, node: self.node, slot: () } }
    }
}

impl<S> Server for Backend<S> {
    fn now(&self) -> i64 {
        clock::now()
    }

    fn boot(&self) -> Option<u64> {
        let known = &self.memory.control.system.boot;
        match known.load(Ordering::Relaxed) {
            0 => file::boot().inspect(|&boot| known.store(boot, Ordering::Relaxed)),
            boot => Some(boot),
        }
    }

    fn chance(&self) -> u32 {
        random::<u32>().max(1)
    }

    fn shared(&self) -> &Shared {
        &self.memory.control.shared
    }

    fn lines(&self) -> &[Line] {
        self.memory.lines
    }

    fn lock<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.memory.control.with_state(act)
    }

    fn point(&self, name: &'static str) {
        stall::at(name);
    }
}

impl<S: Copy> Host for Backend<S> {
    type Error = Error;
    type Writer<'a>
        = FileWriter
    where
        S: 'a;

    fn node(&self) -> Node {
        self.node
    }

    fn timeline(&self) -> Timeline {
        turn::timeline()
    }

    fn page(&mut self) -> Result<Page, Error> {
        page::read()
    }

    fn change_page<R>(&mut self, change: impl FnOnce(&Page) -> (Change, R)) -> Result<R, Error> {
        page::change(change)
    }

    fn writer(&mut self) -> FileWriter {
        self.right(self.memory.control.writer.lock())
    }

    fn try_writer(&mut self) -> Option<FileWriter> {
        Some(self.right(self.memory.control.writer.try_lock()?))
    }

    fn next_xid(&self) -> u64 {
        transaction::next_xid()
    }

    fn is_behind(&mut self, until: i64) {
        report::warning(
            format!("IDs of the previous primary reach up to {}, and the clock is behind that", to_text(until)),
            Some("IDs that are made until then are below some of the previous primary's."),
            "Check the clock. Readers that remember the last ID they have seen can miss rows; use flake_horizon().",
        );
    }
}

impl SlotOwner for Member {
    fn slot<R>(&mut self, act: impl FnOnce(&mut SlotProgress) -> R) -> R {
        // The lock makes the progress visible to the slot's next owner, who takes it too.
        self.memory.control.with_state(|_| {
            // SAFETY: only the owner of the slot uses its progress, and this process owns the slot as long as it lives.
            act(unsafe { &mut *self.slot.progress.get() })
        })
    }
}

impl HorizonHost for Member {
    fn database(&self) -> u32 {
        recovery::database()
    }

    fn own(&self) -> &SlotTransactions {
        &self.slot.transactions
    }

    fn slots(&self) -> impl Iterator<Item = &SlotTransactions> {
        self.memory.slots.iter().map(|slot| &slot.transactions)
    }

    fn nap(&self) {
        transaction::nap();
    }

    fn most_prepared(&self) -> usize {
        prepared::most()
    }

    fn prepared_use(&self) -> &PreparedUse {
        &self.memory.control.prepared
    }

    fn prepared<R>(&self, act: impl FnOnce(&mut [Prepared]) -> R) -> R {
        self.memory.with_prepared(act)
    }

    fn known(&self) -> impl Transactions {
        transaction::OfServer
    }

    fn has_committed(&self, xid: u64) -> bool {
        transaction::has_committed(xid as u32)
    }

    fn use_up_a_number(&mut self) {
        transaction::use_up_a_number();
    }

    fn carry(&self, xid: u64, bound: i64) {
        prepared::carry(xid, bound);
    }

    fn carried(&self) -> Vec<(u32, i64)> {
        prepared::carried()
    }

    fn database_of(&self, xid: u32) -> u32 {
        prepared::database_of(xid)
    }
}

/// The right to write the file. Until it is dropped, nothing that is called raises an error of PostgreSQL.
pub struct FileWriter {
    _guard: Guard<'static, ()>,
    backend: Backend,
}

impl Deref for FileWriter {
    type Target = Backend;

    fn deref(&self) -> &Backend {
        &self.backend
    }
}

impl Writer for FileWriter {
    type Error = Error;

    fn read(&self) -> Result<Option<Vec<u8>>, Error> {
        file::read()
    }

    fn write(&self, half: usize, bytes: &[u8]) -> Result<bool, Error> {
        file::write(half, bytes)
    }

    fn note(&self, bytes: &[u8; NOTE]) -> Result<(), Error> {
        file::note(bytes)
    }

    fn replace(&self, bytes: &[u8]) -> Result<(), Error> {
        file::replace(bytes)
    }
}
