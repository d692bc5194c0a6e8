//! PostgreSQL as the host of the protocol: this process is one of the sessions of its server.
#![allow(unsafe_code, reason = "the progress of this session's slot in shared memory")]

use std::ops::Deref;
use std::sync::atomic::Ordering;

use flake_core::horizon::SlotTransactions;
use flake_core::horizon::host::{HorizonHost, PreparedUse};
use flake_core::horizon::prepared::{Prepared, Transactions};
use flake_core::ledger::host::{Change, Host, Page, Server, Shared, State, Writer};
use flake_core::ledger::note::NOTE;
use flake_core::ledger::pool::{Lease, MOST_LEASES};
use flake_core::{Node, SlotProgress};

use super::attach::{Attachment, attach};
use super::control::Control;
use super::mark::{file, page};
use super::node::node;
use super::{other_version, segment};
use crate::clock;
use crate::error::Error;
use crate::postgres::lwlock::Guard;
use crate::postgres::{prepared, recovery, slot, transaction};

/// This process.
#[derive(Clone, Copy)]
pub struct Backend {
    attachment: Attachment,
    node: Node,
    slot: Option<&'static segment::SlotMemory>,
    leases: Option<*mut Lease>,
}

impl Backend {
    /// Finds the ledger and the memory of this process's slot.
    pub fn with_slot() -> Result<Self, Error> {
        let mut backend = Self::new()?;
        backend.slot = Some(if backend.attachment.other_version.is_some() {
            // Beside another version's ledger, no other session uses this memory.
            Box::leak(Box::default())
        } else {
            let segment =
                segment::segment(backend.attachment.control).map_err(|reason| Error::NoSlotMemory { reason })?;
            &segment.slots[slot::numbers().0 as usize]
        });
        Ok(backend)
    }

    /// Finds the ledger, for a caller that makes no IDs.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { attachment: attach()?, node: node()?, slot: None, leases: None })
    }

    /// Finds the ledger and the leases.
    pub fn with_leases() -> Result<Self, Error> {
        let mut backend = Self::new()?;
        let leases = segment::leases(backend.attachment.control);
        backend.leases = Some(leases.map_err(|reason| Error::NoSlotMemory { reason })?);
        Ok(backend)
    }

    /// The current era.
    #[inline]
    pub fn era(&self) -> u64 {
        self.attachment.control.shared.window.era()
    }

    /// The writer of the ledger's marks.
    fn me(&self) -> Option<flake_core::ledger::marks::Author> {
        self.lock(|state| state.ledger.map(|ledger| ledger.me))
    }

    pub const fn control(&self) -> &'static Control {
        self.attachment.control
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
        &self.attachment.control.shared
    }

    fn lock<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.attachment.control.with_lock(|guarded| act(&mut guarded.state))
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

    fn untraced(&self) -> i64 {
        self.attachment.control.header.others_floor.load(Ordering::Acquire)
    }

    fn wal_timeline(&self) -> u32 {
        recovery::wal_timeline()
    }

    fn page(&mut self) -> Result<Page, Error> {
        let page = page::read()?;
        Ok(if self.attachment.other_version.is_some() { other_version::page(self.me(), page) } else { page })
    }

    fn change_page<R>(&mut self, change: impl FnOnce(&Page) -> (Change, R)) -> Result<R, Error> {
        match self.attachment.other_version {
            None => page::change(change),
            Some(_) => {
                let me = self.me();
                page::change(|page| other_version::change(me, page, change))
            }
        }
    }

    fn writer(&mut self) -> FileWriter<'_> {
        FileWriter { _guard: self.attachment.control.file_lock.take(), backend: self }
    }

    fn try_writer(&mut self) -> Option<FileWriter<'_>> {
        Some(FileWriter { _guard: self.attachment.control.file_lock.try_take()?, backend: self })
    }

    fn slot<R>(&mut self, act: impl FnOnce(&mut SlotProgress) -> R) -> R {
        let Some(slot) = self.slot else { return act(&mut SlotProgress::default()) };
        // The lock makes the progress visible to the slot's next owner, who takes it too.
        self.attachment.control.with_lock(|_| {
            // SAFETY: only the owner of the slot uses its progress, and this process owns the slot as long as it lives.
            act(unsafe { &mut *slot.progress.get() })
        })
    }

    fn next_xid(&self) -> u64 {
        transaction::next_xid()
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
        segment::attached().into_iter().flat_map(|segment| segment.slots).map(|slot| &slot.transactions)
    }

    fn nap(&self) {
        transaction::nap();
    }

    fn all_take_part(&self) -> bool {
        self.control().header.others_sessions.load(Ordering::SeqCst) == 0
    }

    fn most_prepared(&self) -> usize {
        // Beside another version's ledger, this session has no entries.
        segment::attached().map_or(0, |_| prepared::most())
    }

    fn prepared_use(&self) -> &PreparedUse {
        &self.control().prepared
    }

    fn prepared<R>(&self, act: impl FnOnce(&mut [Prepared]) -> R) -> R {
        match segment::attached() {
            Some(segment) => segment.with_prepared(self.control(), act),
            None => act(&mut []),
        }
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

impl FileWriter<'_> {
    /// A session beside another version's ledger does not touch the file.
    const fn is_absent(&self) -> bool {
        self.backend.attachment.other_version.is_some()
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
        if self.is_absent() { Ok(None) } else { file::read() }
    }

    fn write(&self, half: usize, bytes: &[u8]) -> Result<bool, Error> {
        if self.is_absent() { Ok(true) } else { file::write(half, bytes) }
    }

    fn note(&self, bytes: &[u8; NOTE]) -> Result<(), Error> {
        if self.is_absent() { Ok(()) } else { file::note(bytes) }
    }

    fn replace(&self, bytes: &[u8]) -> Result<(), Error> {
        if self.is_absent() { Ok(()) } else { file::replace(bytes) }
    }
}
