//! The control block: what all sessions share except the slots' progress, and the locks that guard it.
#![allow(unsafe_code, reason = "memory that locks guard")]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use flake_core::{Ledger, Node, SHARE_RULE, Window, absent};

use super::databases::Databases;
use super::mark_file::FileState;
use super::seqlock::WindowSeqlock;
use crate::clock;
use crate::postgres::lwlock::LwLock;

/// The size of the control block in every version of the library, so that PostgreSQL finds it by name and size.
pub const CONTROL_SIZE: usize = 4096;
/// The version of [`Control`] and of what it holds.
pub const VERSION: u32 = 2;

/// The beginning of the control block, which is the same in all versions of the library.
#[repr(C)]
pub struct Header {
    pub version: u32,
    /// The rule for shares that all sessions of this server start follow.
    pub share_rule: u32,
    /// The node's number in the lower half, the number of nodes in the upper one; 0 before they are pinned.
    node: AtomicU64,
    /// Sessions of other versions have used only ticks that start before this instant.
    pub foreign_floor: AtomicI64,
    /// How many sessions of other versions there have been.
    pub foreign_sessions: AtomicU32,
}

/// The control block.
#[repr(C)]
pub struct Control {
    pub header: Header,
    /// Guards what lies in memory. It is held for moments only, and never while something is read or written.
    lock: LwLock,
    /// Guards the file of the mark and, with `lock`, the ledger. It is held while the file is written.
    pub(super) file_lock: LwLock,
    /// The handle of the segment with what is kept for each slot.
    pub segment: AtomicU32,
    /// How many sessions have made IDs or asked for a horizon.
    pub sessions: AtomicU32,
    /// The length of the longest tick that a generator has had, in microseconds.
    pub longest_tick: AtomicI64,
    /// Sessions that could not store their progress have used only ticks that start before this instant.
    pub unstored_floor: AtomicI64,
    /// The number of the ledger's memory, once the ledger is open.
    pub memory: AtomicU32,
    /// The greatest mark of another node that was seen in any database.
    pub mark_of_others: AtomicI64,
    guarded: UnsafeCell<Guarded>,
    pub(super) file: UnsafeCell<FileState>,
    /// The guarded ledger's window and era.
    pub window: WindowSeqlock,
    /// The latest present instant that a session has seen.
    pub last_seen: AtomicI64,
    pub counters: Counters,
    /// No ID is made in a tick that has ended by this instant, because it may lie below a horizon.
    pub announced: AtomicI64,
    /// How often that was taken back: horizons from before a recall do not count any more.
    pub recalls: AtomicU32,
    /// What binds every node in the pages that were compared: horizons from before the start of the server are below.
    pub bound: AtomicI64,
    /// Guards the prepared transactions.
    pub(super) prepared_lock: LwLock,
    /// How many entries there may be of those.
    pub prepared: AtomicU32,
    /// What makes IDs from the opening of the ledger on has this number or a greater one, unless it had begun before.
    pub first_xid: AtomicU64,
    /// Whether those are known that were prepared before this server start.
    pub prepared_are_known: AtomicBool,
    /// How many sessions make IDs that horizons cannot know of.
    pub unpublished: AtomicU32,
    /// Those that have exited had no transaction from this one on.
    pub unpublished_until: AtomicU64,
}

const _: () = assert!(size_of::<Control>() <= CONTROL_SIZE);

/// What the lock guards.
pub struct Guarded {
    /// When the preloaded library created the control block; 0 if it was not preloaded.
    pub preloaded_at: i64,
    /// The ledger, once it is open. Only who holds the lock of the file replaces it.
    pub ledger: Option<Ledger>,
    /// Ticks before this instant may be closed because of a restart or a promotion, not because of the clock.
    pub opened_at: i64,
    pub opened_in_recovery: bool,
    /// The databases whose marks the ledger is above.
    pub databases: Databases,
    /// Sessions that have exited have used only ticks that start before this instant in this era, and earlier eras' time
    /// is not used any more.
    pub free_from: i64,
    /// Until this instant, sessions may use time that was granted to them in earlier eras.
    pub granted_before: i64,
    /// The clock minus the steady clock, and the latter, when they were last compared.
    pub clock_offset: Option<(i64, i64)>,
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

// SAFETY: the cells are used only under their locks.
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
        // Whoever was faster has pinned it.
        let _ = self.node.compare_exchange(0, new, Ordering::AcqRel, Ordering::Acquire);
    }
}

impl Control {
    pub fn new() -> Self {
        Self {
            header: Header {
                version: VERSION,
                share_rule: SHARE_RULE,
                node: AtomicU64::new(0),
                foreign_floor: AtomicI64::new(i64::MIN),
                foreign_sessions: AtomicU32::new(0),
            },
            lock: LwLock::new(),
            file_lock: LwLock::new(),
            segment: AtomicU32::new(0),
            sessions: AtomicU32::new(0),
            longest_tick: AtomicI64::new(0),
            unstored_floor: AtomicI64::new(i64::MIN),
            memory: AtomicU32::new(0),
            mark_of_others: AtomicI64::new(i64::MIN),
            guarded: UnsafeCell::new(Guarded {
                preloaded_at: 0,
                ledger: None,
                opened_at: i64::MIN,
                opened_in_recovery: false,
                databases: Databases::default(),
                free_from: i64::MIN,
                granted_before: i64::MIN,
                clock_offset: None,
            }),
            file: UnsafeCell::new(FileState::default()),
            window: WindowSeqlock::default(),
            last_seen: AtomicI64::new(i64::MIN),
            counters: Counters::default(),
            announced: AtomicI64::new(i64::MIN),
            recalls: AtomicU32::new(0),
            bound: AtomicI64::new(i64::MIN),
            prepared_lock: LwLock::new(),
            prepared: AtomicU32::new(0),
            first_xid: AtomicU64::new(0),
            prepared_are_known: AtomicBool::new(false),
            unpublished: AtomicU32::new(0),
            unpublished_until: AtomicU64::new(0),
        }
    }

    /// Gives the locks their names in this session.
    pub fn register_locks(&self) {
        self.lock.register(c"FlakeLedger");
        self.file_lock.register(c"FlakeMark");
        self.prepared_lock.register(c"FlakeHorizon");
    }

    /// Acts under the lock. `act` must neither raise an error of PostgreSQL nor take long. The wait for the lock can be
    /// canceled, except by who has the right to write or exits.
    pub fn with_lock<R>(&self, act: impl FnOnce(&mut Guarded) -> R) -> R {
        let _guard = self.lock.take();
        // SAFETY: this session holds the lock, so no other one uses the cell.
        act(unsafe { &mut *self.guarded.get() })
    }

    /// Returns the ledger's window and era.
    pub fn window(&self) -> (Window, u64) {
        self.window.try_read().unwrap_or_else(|| {
            let Some(ledger) = self.ledger() else { unreachable!("generators begin after the ledger was opened") };
            (ledger.window(), ledger.era())
        })
    }

    /// Returns the ledger, once it is open.
    pub fn ledger(&self) -> Option<Ledger> {
        self.with_lock(|guarded| guarded.ledger)
    }

    /// No session without progress of its own in the ledger has used a tick that starts at or after this instant.
    pub fn untraced_floor(&self) -> i64 {
        self.unstored_floor.load(Ordering::Acquire).max(self.header.foreign_floor.load(Ordering::Acquire))
    }
}

impl Guarded {
    /// Returns by how many microseconds the clock was set since the last call; 0 if it was not.
    pub fn clock_step(&mut self) -> i64 {
        let (now, steady) = (clock::now(), clock::steady());
        let Some((offset, at)) = self.clock_offset.replace((now - steady, steady)) else { return 0 };
        let step = now - steady - offset;
        // Slewing shifts a clock by at most a thousandth of the time that passes.
        if step.abs() > 250_000 + (steady - at) / 1000 && !absent!(ClockNoticed) { step } else { 0 }
    }
}
