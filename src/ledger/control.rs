//! The control block: what all sessions share except the slots' progress, and the lock that guards it.
#![allow(unsafe_code, reason = "PostgreSQL's locks, and the memory that they guard")]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

use flake_core::Ledger;
use flake_core::record::{ExitNote, Record};
use pgrx::pg_sys;

use super::mark_file::{self, Durability};
use super::seqlock::WindowSeqlock;
use crate::clock;
use crate::error::Error;

/// The size of the control block in every version of the library, so that PostgreSQL finds it by name and size.
pub const CONTROL_SIZE: usize = 4096;
/// The version of [`Control`] and of what it holds.
pub const VERSION: u32 = 1;

/// The beginning of the control block, which is the same in all versions of the library.
#[repr(C)]
pub struct Header {
    pub version: u32,
    /// Sessions that could not store their progress have used only ticks that start before this instant.
    pub unstored_floor: AtomicI64,
}

/// The control block.
#[repr(C)]
pub struct Control {
    pub header: Header,
    lock: UnsafeCell<pg_sys::LWLock>,
    /// The handle of the segment with the slots' progress.
    pub segment: AtomicU32,
    /// How many sessions have generators.
    pub sessions: AtomicU32,
    guarded: UnsafeCell<Guarded>,
    /// The guarded ledger's window and era.
    pub window: WindowSeqlock,
    /// The latest present instant that a session has seen.
    pub last_seen: AtomicI64,
    pub counters: Counters,
}

const _: () = assert!(size_of::<Control>() <= CONTROL_SIZE);

/// What the lock guards.
pub struct Guarded {
    /// The node's number and the number of nodes in force; 0 nodes before they are pinned.
    pub node: (u32, u32),
    /// When the preloaded library created the control block; 0 if it was not preloaded.
    pub preloaded_at: i64,
    /// The ledger, once it is open.
    pub ledger: Option<Ledger>,
    /// Ticks before this instant may be closed because of a restart, not because of the clock.
    pub opened_at: i64,
    pub opened_in_recovery: bool,
    /// Sessions that have exited have used only ticks that start before this instant.
    pub free_from: i64,
    /// The number of the last record in the mark's file.
    pub record_number: u64,
    /// The half of the file that holds the last record that is on disk.
    pub durable_half: usize,
    pub has_exit_note: bool,
    /// The clock minus the steady clock, and the latter, when they were last compared.
    pub clock_offset: Option<(i64, i64)>,
}

/// Counts of all sessions, which add theirs when they ask for time, about every two seconds, and when they exit.
#[derive(Default)]
pub struct Counters {
    pub issued: AtomicU64,
    pub overflow_waits: AtomicU64,
    pub clock_waits: AtomicU64,
    pub clock_steps: AtomicU64,
    /// In microseconds.
    pub longest_wait: AtomicU64,
}

// SAFETY: the cells are used only under the lock.
unsafe impl Sync for Control {}

impl Control {
    pub fn new() -> Self {
        // SAFETY: nobody uses the lock before it lies in shared memory.
        let lock = unsafe {
            let mut lock = std::mem::zeroed();
            pg_sys::LWLockInitialize(&mut lock, pg_sys::LWLockNewTrancheId());
            lock
        };
        Self {
            header: Header { version: VERSION, unstored_floor: AtomicI64::new(i64::MIN) },
            lock: UnsafeCell::new(lock),
            segment: AtomicU32::new(0),
            sessions: AtomicU32::new(0),
            guarded: UnsafeCell::new(Guarded {
                node: (0, 0),
                preloaded_at: 0,
                ledger: None,
                opened_at: i64::MIN,
                opened_in_recovery: false,
                free_from: i64::MIN,
                record_number: 0,
                durable_half: 0,
                has_exit_note: false,
                clock_offset: None,
            }),
            window: WindowSeqlock::default(),
            last_seen: AtomicI64::new(i64::MIN),
            counters: Counters::default(),
        }
    }

    /// Gives the lock's tranche its name in this session.
    pub fn register_lock(&self) {
        // SAFETY: the lock was initialized with its tranche; the name lives as long as the library.
        unsafe { pg_sys::LWLockRegisterTranche((*self.lock.get()).tranche.into(), c"FlakeLedger".as_ptr()) };
    }

    /// Acts under the lock. `act` must not raise an error of PostgreSQL.
    pub fn with_lock<R>(&self, act: impl FnOnce(&mut Guarded) -> R) -> R {
        // SAFETY: the lock is in shared memory.
        unsafe { pg_sys::LWLockAcquire(self.lock.get(), pg_sys::LWLockMode::LW_EXCLUSIVE) };
        self.act_and_release(act)
    }

    /// Acts under the lock if it is free. `act` must not raise an error of PostgreSQL.
    pub fn try_with_lock<R>(&self, act: impl FnOnce(&mut Guarded) -> R) -> Option<R> {
        // SAFETY: the lock is in shared memory.
        let is_free = unsafe { pg_sys::LWLockConditionalAcquire(self.lock.get(), pg_sys::LWLockMode::LW_EXCLUSIVE) };
        is_free.then(|| self.act_and_release(act))
    }

    fn act_and_release<R>(&self, act: impl FnOnce(&mut Guarded) -> R) -> R {
        // SAFETY: this session holds the lock, so no other one uses the cell.
        unsafe {
            let result = act(&mut *self.guarded.get());
            pg_sys::LWLockRelease(self.lock.get());
            result
        }
    }
}

impl Guarded {
    /// Writes the ledger to disk, then puts it in force.
    pub fn replace(&mut self, control: &Control, ledger: Ledger) -> Result<(), Error> {
        self.store(&ledger, None, Durability::Flushed)?;
        self.ledger = Some(ledger);
        control.window.write(&ledger);
        Ok(())
    }

    /// Writes a record of the ledger, never over the last one that is on disk.
    pub fn store(&mut self, ledger: &Ledger, exit_note: Option<ExitNote>, durability: Durability) -> Result<(), Error> {
        let half = 1 - self.durable_half;
        let has_exit_note = exit_note.is_some();
        let record = Record::new(self.record_number + 1, ledger.timeline(), exit_note);
        mark_file::store(half, &record, durability)?;
        self.record_number += 1;
        self.has_exit_note = has_exit_note;
        if durability == Durability::Flushed {
            self.durable_half = half;
        }
        Ok(())
    }

    /// Returns by how many microseconds the clock was set since the last call; 0 if it was not.
    pub fn clock_step(&mut self) -> i64 {
        let (now, steady) = (clock::now(), clock::steady());
        let Some((offset, at)) = self.clock_offset.replace((now - steady, steady)) else { return 0 };
        let step = now - steady - offset;
        // Slewing shifts a clock by at most a thousandth of the time that passes.
        if step.abs() > 250_000 + (steady - at) / 1000 { step } else { 0 }
    }
}
