//! The control block: what all sessions share except the slots' progress, and the locks that guard it.
#![allow(unsafe_code, reason = "memory that locks guard")]

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use flake_core::horizon::host::PreparedUse;
use flake_core::ledger::host::{Shared, State};
use flake_core::{Node, SHARE_RULE};

use super::pages::Pages;
use crate::clock;
use crate::postgres::lwlock::LwLock;

/// The size of the control block in every version of the library, so that PostgreSQL finds it by name and size.
pub const CONTROL_SIZE: usize = 4096;
/// The version of [`Control`] and of what it holds.
pub const VERSION: u32 = 1;

/// The beginning of the control block, which is the same in all versions of the library.
#[repr(C)]
pub struct Header {
    pub version: u32,
    /// The rule for shares that all sessions of this server start follow.
    pub share_rule: u32,
    /// The node's number in the lower half, the number of nodes in the upper one; 0 before they are pinned.
    node: AtomicU64,
    /// Sessions of other versions have used only ticks that start before this instant.
    pub others_floor: AtomicI64,
    /// How many sessions of other versions there have been.
    pub others_sessions: AtomicU32,
}

/// The control block.
#[repr(C)]
pub struct Control {
    pub header: Header,
    /// Guards what lies in memory. It is held for moments only, and never while something is read or written.
    lock: LwLock,
    /// Guards the file of the mark and, with `lock`, the ledger. It is held while the file is written.
    pub(super) file_lock: LwLock,
    /// The handle of the dynamic segment with what is kept for each slot.
    pub segment: AtomicU32,
    /// The handle of the dynamic segment with the leases.
    pub leases: AtomicU32,
    /// Whether that is in the main segment instead.
    pub is_preloaded: AtomicBool,
    /// For all sessions, without a lock.
    pub shared: Shared,
    guarded: UnsafeCell<Guarded>,
    pub counters: Counters,
    /// Guards the prepared transactions.
    pub(super) prepared_lock: LwLock,
    /// How those are kept.
    pub prepared: PreparedUse,
    pub pages: Pages,
    pub system: System,
}

const _: () = assert!(size_of::<Control>() <= CONTROL_SIZE);

/// The fields that the lock guards.
#[derive(Default)]
pub struct Guarded {
    pub state: State,
    /// The clock minus the steady clock, and the latter, when they were last compared.
    clock_offset: Option<(i64, i64)>,
}

/// Counts of all sessions, which add theirs when they ask for time, about every two seconds, and when they exit.
#[derive(Default)]
pub struct Counters {
    pub issued: AtomicU64,
    pub overflow_waits: AtomicU64,
    pub clock_waits: AtomicU64,
    pub clock_changes: AtomicU64,
    /// In microseconds.
    pub longest_wait: AtomicU64,
}

/// Facts that sessions have read of the operating system, so that short ones need not read them.
#[derive(Default)]
pub struct System {
    /// Identifies its run; 0 if nobody has looked yet.
    pub boot: AtomicU64,
    /// Whether it uses the time stamp counter as its clock, and when somebody looked at that.
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
        // A faster session has pinned it.
        let _ = self.node.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// The names of the locks.
const LEDGER: &CStr = c"FlakeLedger";
const MARK: &CStr = c"FlakeMark";
const HORIZON: &CStr = c"FlakeHorizon";

impl Control {
    pub fn new() -> Self {
        Self {
            header: Header {
                version: VERSION,
                share_rule: SHARE_RULE,
                node: AtomicU64::new(0),
                others_floor: AtomicI64::new(i64::MIN),
                others_sessions: AtomicU32::new(0),
            },
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

    /// Gives the locks their names in this session.
    pub fn register_locks(&self) {
        self.lock.register(LEDGER);
        self.file_lock.register(MARK);
        self.prepared_lock.register(HORIZON);
    }

    /// Acts under the lock. `act` must neither raise an error of PostgreSQL nor take long. The wait for the lock can be
    /// canceled, except by who has the right to write or exits.
    pub fn with_lock<R>(&self, act: impl FnOnce(&mut Guarded) -> R) -> R {
        let _guard = self.lock.take();
        // SAFETY: this session holds the lock, so no other one uses the cell.
        act(unsafe { &mut *self.guarded.get() })
    }
}

impl Guarded {
    /// Returns by how many microseconds the clock was set since the last call; 0 if it was not.
    pub fn clock_step(&mut self) -> i64 {
        let (now, steady) = (clock::now(), clock::steady());
        let Some((offset, at)) = self.clock_offset.replace((now - steady, steady)) else { return 0 };
        let step = now - steady - offset;
        // Slewing shifts a clock by at most a thousandth of the time that passes.
        if step.abs() > 250_000 + (steady - at) / 1000 { step } else { 0 }
    }
}
