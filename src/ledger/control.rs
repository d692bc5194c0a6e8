//! The control block: what all sessions share, except for the cursors of lanes and the memory of each proc.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use flake_core::ledger::time::shared::Shared;
use flake_core::ledger::time::state::State;
use flake_core::watermark::host::PreparedUse;
use flake_core::{DIVISION_VERSION, Node};

use super::pages::Pages;
use crate::clock;
use crate::postgres::injection_point;
use crate::postgres::lock::Lock;

/// The version of the form of shared memory: of [`Control`], of the arrays behind it, and of everything in them.
pub const VERSION: u32 = 4;

/// The beginning of the segment. All versions of the library begin with the same two numbers.
#[repr(C)]
pub struct Header {
    pub version: u32,
    /// The rule that divides a tick's IDs, for all sessions until the server restarts.
    pub division: u32,
    /// The node number in the lower half and the number of nodes in the upper half; 0 before they are pinned.
    node: AtomicU64,
}

/// The control block.
#[repr(C, align(64))]
pub struct Control {
    pub header: Header,
    /// The state in memory. A session locks it briefly, and never while it reads or writes a file.
    pub guarded: Lock<Guarded>,
    /// The right to write the file flake.mark, and with the other lock to replace the ledger. A session holds it while it writes the
    /// file.
    pub writer: Lock<()>,
    /// Memory that sessions use without a lock.
    pub shared: Shared,
    pub counters: Counters,
    /// Guards the entries of prepared transactions.
    pub prepared_lock: Lock<()>,
    /// Counts of the prepared transactions, which sessions read without a lock.
    pub prepared: PreparedUse,
    pub pages: Pages,
    pub system: System,
}

/// The state that a lock guards.
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
    pub clock_changes: AtomicU64,
    /// In microseconds.
    pub longest_wait: AtomicU64,
}

/// Facts about the operating system that sessions have found, so that short sessions need not read them again.
#[derive(Default)]
pub struct System {
    /// Whether Linux uses the time stamp counter as its clock, and when a session last checked that.
    pub uses_counter: AtomicBool,
    pub looked_at: AtomicI64,
}

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

impl Control {
    /// May raise an error.
    pub fn new() -> Self {
        Self {
            header: Header { version: VERSION, division: DIVISION_VERSION, node: AtomicU64::new(0) },
            guarded: Lock::new(c"FlakeLedger", Guarded::default()),
            writer: Lock::new(c"FlakeMark", ()),
            shared: Shared::default(),
            counters: Counters::default(),
            prepared_lock: Lock::new(c"FlakeWatermark", ()),
            prepared: PreparedUse::default(),
            pages: Pages::default(),
            system: System::default(),
        }
    }

    /// Calls `act` under the lock of the ledger. `act` must not raise an error of PostgreSQL and must be quick.
    pub fn with_state<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut guarded = self.guarded.lock();
        injection_point::run("FlakeLedger");
        act(&mut guarded.state)
    }
}

impl Guarded {
    /// Returns by how many microseconds the clock was set since the last call; 0 if it was not set.
    pub fn clock_step(&mut self) -> i64 {
        let (now, monotonic) = (clock::now(), clock::monotonic());
        let Some((offset, at)) = self.clock_offset.replace((now - monotonic, monotonic)) else { return 0 };
        let step = now - monotonic - offset;
        // A clock that is slewed, not set, shifts by at most a thousandth of the time that passes.
        if step.abs() > 250_000 + (monotonic - at) / 1000 { step } else { 0 }
    }
}
