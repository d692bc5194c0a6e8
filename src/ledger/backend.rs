//! PostgreSQL as the host of the protocol: this process is one of the sessions of its server.
#![allow(unsafe_code, reason = "the progress of this session's slot in shared memory")]

use std::ops::Deref;
use std::sync::atomic::Ordering;

use flake_core::horizon::SlotTransactions;
use flake_core::horizon::host::{HorizonHost, PreparedUse};
use flake_core::horizon::prepared::{Prepared, Transactions};
use flake_core::ledger::host::{Change, Host, Page, Server, Shared, State, Writer};
use flake_core::ledger::line::Line;
use flake_core::ledger::note::NOTE;
use flake_core::ledger::pool::{Lease, MOST_LEASES};
use flake_core::{Node, SlotProgress};

use super::attach::attach;
use super::control::Control;
use super::mark::{file, page};
use super::node::node;
use super::segment::{self, Segment};
use super::turn;
use crate::clock;
use crate::error::Error;
use crate::postgres::lwlock::Guard;
use crate::postgres::report;
use crate::postgres::timestamptz::Timestamptz;
use crate::postgres::{prepared, recovery, slot, transaction};

/// This process.
#[derive(Clone, Copy)]
pub struct Backend {
    control: &'static Control,
    segment: Segment,
    node: Node,
    slot: Option<&'static segment::SlotMemory>,
    leases: Option<*mut Lease>,
}

impl Backend {
    /// Finds the ledger and the memory of this process's slot.
    pub fn with_slot() -> Result<Self, Error> {
        let mut backend = Self::new()?;
        backend.slot = Some(&backend.segment.slots[slot::numbers().0 as usize]);
        Ok(backend)
    }

    /// Finds the ledger, for a caller that makes no IDs.
    pub fn new() -> Result<Self, Error> {
        let control = attach()?;
        // Also a session that only begins an era needs the words, which it resets.
        let segment = segment::segment(control).map_err(|reason| Error::NoSlotMemory { reason })?;
        Ok(Self { control, segment, node: node()?, slot: None, leases: None })
    }

    /// Finds the ledger and the leases.
    pub fn with_leases() -> Result<Self, Error> {
        let mut backend = Self::new()?;
        let leases = segment::leases(backend.control);
        backend.leases = Some(leases.map_err(|reason| Error::NoSlotMemory { reason })?);
        Ok(backend)
    }

    /// The current era.
    #[inline]
    pub fn era(&self) -> u64 {
        self.control.shared.window.era()
    }

    pub const fn control(&self) -> &'static Control {
        self.control
    }
}

impl Server for Backend {
    fn now(&self) -> i64 {
        clock::now()
    }

    fn steady(&self) -> i64 {
        clock::steady()
    }

    fn boot(&self) -> Option<u64> {
        let known = &self.control().system.boot;
        match known.load(Ordering::Relaxed) {
            0 => file::boot().inspect(|&boot| known.store(boot, Ordering::Relaxed)),
            boot => Some(boot),
        }
    }

    fn chance(&self) -> u32 {
        rand::random::<u32>().max(1)
    }

    fn shared(&self) -> &Shared {
        &self.control.shared
    }

    fn lines(&self) -> &[Line] {
        self.segment.lines
    }

    fn lock<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.control.with_lock(|guarded| act(&mut guarded.state))
    }

    fn point(&self, name: &'static str) {
        crate::postgres::stall::at(name);
    }
}

impl Host for Backend {
    type Error = Error;
    type Writer<'a> = FileWriter<'a>;

    fn node(&self) -> Node {
        self.node
    }

    fn wal_timeline(&self) -> (u32, u32) {
        let timeline = recovery::wal_timeline();
        (timeline, flake_core::turn(turn::history(timeline).unwrap_or_else(|| vec![timeline])))
    }

    fn page(&mut self) -> Result<Page, Error> {
        page::read()
    }

    fn change_page<R>(&mut self, change: impl FnOnce(&Page) -> (Change, R)) -> Result<R, Error> {
        page::change(change)
    }

    fn writer(&mut self) -> FileWriter<'_> {
        FileWriter { _guard: self.control.file_lock.take(), backend: self }
    }

    fn try_writer(&mut self) -> Option<FileWriter<'_>> {
        Some(FileWriter { _guard: self.control.file_lock.try_take()?, backend: self })
    }

    fn slot<R>(&mut self, act: impl FnOnce(&mut SlotProgress) -> R) -> R {
        let Some(slot) = self.slot else { return act(&mut SlotProgress::default()) };
        // The lock makes the progress visible to the slot's next owner, who takes it too.
        self.control.with_lock(|_| {
            // SAFETY: only the owner of the slot uses its progress, and this process owns the slot as long as it lives.
            act(unsafe { &mut *slot.progress.get() })
        })
    }

    fn next_xid(&self) -> u64 {
        transaction::next_xid()
    }

    fn has_new_turn(&mut self, timeline: u32) {
        if turn::history(timeline).is_none() {
            turn::warn(timeline);
        }
    }

    fn is_behind(&mut self, until: i64) {
        report::warning(
            format!(
                "IDs of the previous primary reach up to {}, and the clock is behind that",
                Timestamptz::from_instant(until).to_text()
            ),
            Some("IDs that are made until then are below some of the previous primary's."),
            "Check the clock. Readers that remember the last ID they have seen can miss rows; use flake_horizon().",
        );
    }
}

impl HorizonHost for Backend {
    fn database(&self) -> u32 {
        recovery::database()
    }

    fn own(&self) -> Option<&SlotTransactions> {
        self.slot.map(|slot| &slot.transactions)
    }

    fn slots(&self) -> impl Iterator<Item = &SlotTransactions> {
        self.segment.slots.iter().map(|slot| &slot.transactions)
    }

    fn nap(&self) {
        transaction::nap();
    }

    fn most_prepared(&self) -> usize {
        prepared::most()
    }

    fn prepared_use(&self) -> &PreparedUse {
        &self.control().prepared
    }

    fn prepared<R>(&self, act: impl FnOnce(&mut [Prepared]) -> R) -> R {
        self.segment.with_prepared(self.control, act)
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
pub struct FileWriter<'a> {
    _guard: Guard<'a>,
    backend: &'a Backend,
}

impl Deref for FileWriter<'_> {
    type Target = Backend;

    fn deref(&self) -> &Backend {
        self.backend
    }
}

impl Writer for FileWriter<'_> {
    type Error = Error;

    fn leases<R>(&self, act: impl FnOnce(&mut [Lease]) -> R) -> R {
        match self.backend.leases {
            // SAFETY: the segment has this many, and this session has the right to change them.
            Some(leases) => act(unsafe { std::slice::from_raw_parts_mut(leases, MOST_LEASES) }),
            None => act(&mut []),
        }
    }

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
