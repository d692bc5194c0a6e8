//! The control block: the shared memory of all sessions, except for the words of lanes and the memory of each slot, and the locks
//! that guard it.
#![allow(unsafe_code, reason = "memory that locks guard")]

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use flake_core::horizon::host::PreparedUse;
use flake_core::ledger::host::{Shared, State};
use flake_core::{DIVISION, Node};

use super::pages::Pages;
use crate::clock;
use crate::postgres::lwlock::LwLock;

/// The size of the control block. PostgreSQL finds the block by name and size, so every version of the library has the same.
pub const CONTROL_SIZE: usize = 4096;
/// The version of the form of shared memory: of [`Control`], of the segment, and of everything in them.
pub const VERSION: u32 = 1;

/// The beginning of the control block. All versions of the library begin with the same two numbers.
#[repr(C)]
pub struct Header {
    pub version: u32,
    /// The rule that divides a tick's IDs, for all sessions until the server restarts.
    pub division: u32,
    /// The node number in the lower half and the number of nodes in the upper half; 0 before they are pinned.
    node: AtomicU64,
}

/// The control block.
#[repr(C)]
pub struct Control {
    pub header: Header,
    /// Guards the state in memory. A session holds it briefly, and never while it reads or writes a file.
    lock: LwLock,
    /// Guards the file flake.mark, and with `lock` the ledger. A session holds it while it writes the file.
    pub(super) file_lock: LwLock,
    /// The handle of the dynamic segment with the words of lanes and the memory of each slot.
    pub segment: AtomicU32,
    /// The handle of the dynamic segment with the leases.
    pub leases: AtomicU32,
    /// Whether all that is in the main segment instead.
    pub is_preloaded: AtomicBool,
    /// Memory that sessions use without a lock.
    pub shared: Shared,
    guarded: UnsafeCell<Guarded>,
    pub counters: Counters,
    /// Guards the prepared transactions.
    pub(super) prepared_lock: LwLock,
    /// Counts of the prepared transactions, which sessions read without a lock.
    pub prepared: PreparedUse,
    pub pages: Pages,
    pub system: System,
}

const _: () = assert!(size_of::<Control>() <= CONTROL_SIZE);

/// The state that `lock` guards.
#[derive(Default)]
pub struct Guarded {
    pub state: State,
    /// The difference between the clock and the steady clock when they were last compared, and the latter's reading then.
    clock_offset: Option<(i64, i64)>,
}

/// Counters of the server. Each session adds its counts when it asks for time, about every two seconds, and when it exits.
#[derive(Default)]
pub struct Counters {
    pub issued: AtomicU64,
    pub overflow_waits: AtomicU64,
    pub clock_waits: AtomicU64,
    pub clock_changes: AtomicU64,
    /// In microseconds.
    pub longest_wait: AtomicU64,
}

/// Facts about the operating system that sessions have found, so that short sessions need not read them again.
#[derive(Default)]
pub struct System {
    /// Identifies the run of the operating system; 0 before any session has read it.
    pub boot: AtomicU64,
    /// Whether Linux uses the time stamp counter as its clock, and when a session last checked that.
    pub uses_counter: AtomicBool,
    pub looked_at: AtomicI64,
}

// SAFETY: the cell is used only under its lock.
unsafe impl Sync for Control {}

impl Header {
    /// Returns the node's number and the number of nodes in force, once they are pinned.
    pub fn node(&self) -> Option<Node> {
        let node = self.node.load(Ordering::Acquire);
        Node::new(node as u32, (node >> 32) as u32).ok()
    }

    /// Pins a node unless one is pinned.
    pub fn pin(&self, node: Node) {
        let new = u64::from(node.count()) << 32 | u64::from(node.id());
        // If this fails, another session has pinned the node in the meantime.
        let _ = self.node.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// The name of each lock in wait events.
const LEDGER: &CStr = c"FlakeLedger";
const MARK: &CStr = c"FlakeMark";
const HORIZON: &CStr = c"FlakeHorizon";

impl Control {
    pub fn new() -> Self {
        Self {
            header: Header { version: VERSION, division: DIVISION, node: AtomicU64::new(0) },
            lock: LwLock::new(LEDGER),
            file_lock: LwLock::new(MARK),
            segment: AtomicU32::new(0),
            leases: AtomicU32::new(0),
            is_preloaded: AtomicBool::new(false),
            shared: Shared::default(),
            guarded: UnsafeCell::default(),
            counters: Counters::default(),
            prepared_lock: LwLock::new(HORIZON),
            prepared: PreparedUse::default(),
            pages: Pages::default(),
            system: System::default(),
        }
    }

    /// Registers the names of the locks in this session.
    pub fn register_locks(&self) {
        self.lock.register(LEDGER);
        self.file_lock.register(MARK);
        self.prepared_lock.register(HORIZON);
    }

    /// Calls `act` under the lock. `act` must not raise an error of PostgreSQL and must be quick. The wait for the lock can be
    /// canceled, unless the session has the right to write or is exiting.
    pub fn with_lock<R>(&self, act: impl FnOnce(&mut Guarded) -> R) -> R {
        let _guard = self.lock.take();
        // SAFETY: this session holds the lock, so no other one uses the cell.
        act(unsafe { &mut *self.guarded.get() })
    }
}

impl Guarded {
    /// Returns by how many microseconds the clock was set since the last call; 0 if it was not set.
    pub fn clock_step(&mut self) -> i64 {
        let (now, steady) = (clock::now(), clock::steady());
        let Some((offset, at)) = self.clock_offset.replace((now - steady, steady)) else { return 0 };
        let step = now - steady - offset;
        // A clock that is slewed, not set, shifts by at most a thousandth of the time that passes.
        if step.abs() > 250_000 + (steady - at) / 1000 { step } else { 0 }
    }
}
