//! PostgreSQL as the host of the protocol: this process is one of the sessions of its server.

use std::ops::Deref;

use flake_core::Node;
use flake_core::ledger::cursors::line::LaneCursors;
use flake_core::ledger::host::{Change, Host, Page, Server, Timeline, Writer};
use flake_core::ledger::time::shared::Shared;
use flake_core::ledger::time::state::State;
use flake_core::watermark::ProcTransactions;
use flake_core::watermark::host::{PreparedUse, WatermarkHost};
use flake_core::watermark::prepared::{Prepared, Transactions};

use super::mark::{file, page};
use super::memory::{Memory, attach};
use super::node::node;
use super::turn;
use crate::error::Error;
use crate::postgres::lock::Guard;
use crate::postgres::random::random;
use crate::postgres::{injection_point, prepared, proc, recovery, transaction};
use crate::{clock, settings};

/// This process, with the memory of its proc.
#[derive(Clone, Copy)]
pub struct Backend {
    memory: &'static Memory,
    node: Node,
    proc: &'static ProcTransactions,
}

impl Backend {
    /// Finds the ledger.
    pub fn new() -> Result<Self, Error> {
        let memory = attach()?;
        Ok(Self { memory, node: node()?, proc: &memory.procs[proc::number() as usize] })
    }

    /// The current era.
    #[inline]
    pub fn era(&self) -> u64 {
        self.memory.control.shared.era()
    }

    fn right(&self, guard: Guard<'static, ()>) -> FileWriter {
        injection_point::run("FlakeMark");
        FileWriter { _guard: guard, backend: *self }
    }
}

impl Server for Backend {
    #[inline]
    fn clock(&self) -> i64 {
        clock::now()
    }

    fn monotonic(&self) -> i64 {
        clock::monotonic()
    }

    fn shared(&self) -> &Shared {
        &self.memory.control.shared
    }

    fn lines(&self) -> &[LaneCursors] {
        self.memory.lines
    }

    fn lock<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.memory.control.with_state(act)
    }

    fn point(&self, name: &'static str) {
        injection_point::run(name);
    }
}

impl Host for Backend {
    type Error = Error;
    type Writer<'a> = FileWriter;

    fn node(&self) -> Node {
        self.node
    }

    fn timeline(&self) -> Timeline {
        turn::timeline()
    }

    fn random(&self) -> u64 {
        random::<u64>().max(1)
    }

    fn max_lead(&self) -> i64 {
        settings::max_lead()
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
}

impl WatermarkHost for Backend {
    fn database(&self) -> u32 {
        recovery::database()
    }

    fn own(&self) -> &ProcTransactions {
        self.proc
    }

    fn procs(&self) -> impl Iterator<Item = &ProcTransactions> {
        self.memory.procs.iter()
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

    fn consume_xid(&mut self) {
        transaction::consume_xid();
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

    fn replace(&self, bytes: &[u8]) -> Result<(), Error> {
        file::replace(bytes)
    }
}
