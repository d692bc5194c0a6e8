//! The control block: what all sessions share but for the traces of slots, and the lock that guards it.
#![allow(unsafe_code, reason = "PostgreSQL's locks, and memory that they guard")]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use flake_core::record::{Left, Record};
use flake_core::{Error, Ledger, Window};
use pgrx::pg_sys;

use crate::clock;
use crate::ledger::mark_file as mark;

/// Of [`Control`] and what it holds. Up to [`Control::unkept`] all versions are alike.
pub(super) const VERSION: u32 = 1;

/// The control block.
#[repr(C)]
pub struct Control {
    pub(super) version: u32,
    /// Sessions that could leave no trace have only used ticks that start before.
    pub(super) unkept: AtomicI64,
    pub(super) lock: UnsafeCell<pg_sys::LWLock>,
    /// Handle of the segment with the traces.
    pub(super) segment: AtomicU32,
    /// Sessions that have generators.
    pub(super) sessions: AtomicU32,
    pub(super) guarded: UnsafeCell<Guarded>,
    pub(super) published: Published,
    /// Where the present was when somebody last asked.
    pub(super) seen: AtomicI64,
    pub counters: Counters,
}

/// What the lock is for.
pub(super) struct Guarded {
    pub(super) node: (u32, u32),
    /// When the library was preloaded; else 0.
    pub(super) born: i64,
    /// The ledger, once there is one.
    pub(super) ledger: Option<Ledger>,
    /// Ticks below it may be unusable because of a restart, not of a clock.
    pub(super) opened_at: i64,
    pub(super) opened_in_recovery: bool,
    /// Ended sessions have only used ticks that start before.
    pub(super) free_from: i64,
    /// Of the last record: its number, the place of the last one that is on disk, and whether it is a note.
    pub(super) number: u64,
    pub(super) forced_place: usize,
    pub(super) has_note: bool,
    /// The clock minus one that is never set, when last looked at.
    pub(super) offset: Option<(i64, i64)>,
}

/// The ledger's window and era, to be read without the lock: odd while they change.
pub(super) struct Published {
    pub(super) changes: AtomicU64,
    pub(super) from: AtomicI64,
    pub(super) until: AtomicI64,
    pub(super) skip: AtomicI64,
    pub(super) era: AtomicU64,
}

/// Of all sessions; those that go on add theirs when they ask for time, about every two seconds.
#[derive(Default)]
pub struct Counters {
    pub issued: AtomicU64,
    pub overflow_waits: AtomicU64,
    pub clock_waits: AtomicU64,
    pub clock_steps: AtomicU64,
    /// In microseconds.
    pub longest_wait: AtomicU64,
}

// SAFETY: what is in cells is used under the lock only.
unsafe impl Sync for Control {}

impl Control {
    pub(super) fn new() -> Self {
        // SAFETY: the lock lies in shared memory when it is used first.
        let lock = unsafe {
            let mut lock = std::mem::zeroed();
            pg_sys::LWLockInitialize(&mut lock, pg_sys::LWLockNewTrancheId());
            lock
        };
        Self {
            version: VERSION,
            unkept: AtomicI64::new(i64::MIN),
            lock: UnsafeCell::new(lock),
            segment: AtomicU32::new(0),
            sessions: AtomicU32::new(0),
            guarded: UnsafeCell::new(Guarded {
                node: (0, 0),
                born: 0,
                ledger: None,
                opened_at: i64::MIN,
                opened_in_recovery: false,
                free_from: i64::MIN,
                number: 0,
                forced_place: 0,
                has_note: false,
                offset: None,
            }),
            published: Published {
                changes: AtomicU64::new(0),
                from: AtomicI64::new(0),
                until: AtomicI64::new(0),
                skip: AtomicI64::new(0),
                era: AtomicU64::new(0),
            },
            seen: AtomicI64::new(i64::MIN),
            counters: Counters::default(),
        }
    }

    /// Acts under the lock, waiting for it or, where that is not wanted, only when it is free.
    pub(super) fn locked<R>(&self, wait: bool, act: impl FnOnce(&mut Guarded) -> R) -> Option<R> {
        // SAFETY: the lock is in shared memory; `act` raises no error of PostgreSQL, so that it is released here.
        unsafe {
            if wait {
                pg_sys::LWLockAcquire(self.lock.get(), pg_sys::LWLockMode::LW_EXCLUSIVE);
            } else if !pg_sys::LWLockConditionalAcquire(self.lock.get(), pg_sys::LWLockMode::LW_EXCLUSIVE) {
                return None;
            }
            let result = act(&mut *self.guarded.get());
            pg_sys::LWLockRelease(self.lock.get());
            Some(result)
        }
    }

    pub(super) fn guard<R>(&self, act: impl FnOnce(&mut Guarded) -> R) -> R {
        match self.locked(true, act) {
            Some(result) => result,
            None => unreachable!("the lock is waited for"),
        }
    }
}

impl Published {
    pub(super) fn set(&self, ledger: &Ledger) {
        let window = ledger.window();
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.from.store(window.from, Ordering::Release);
        self.until.store(window.until, Ordering::Release);
        self.skip.store(window.skip, Ordering::Release);
        self.era.store(ledger.era(), Ordering::Release);
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn get(&self) -> (Window, u64) {
        loop {
            let before = self.changes.load(Ordering::Acquire);
            let from = self.from.load(Ordering::Acquire);
            let until = self.until.load(Ordering::Acquire);
            let skip = self.skip.load(Ordering::Acquire);
            let era = self.era.load(Ordering::Acquire);
            if before.is_multiple_of(2) && self.changes.load(Ordering::Acquire) == before {
                return (Window { from, until, skip }, era);
            }
            std::hint::spin_loop();
        }
    }
}

impl Guarded {
    /// Has this ledger be on disk, and then in force.
    pub(super) fn replace(&mut self, control: &Control, ledger: Ledger) -> Result<(), Error> {
        self.store(&ledger, None, true)?;
        self.ledger = Some(ledger);
        control.published.set(&ledger);
        Ok(())
    }

    /// Never writes over the last record that was forced to disk.
    pub(super) fn store(&mut self, ledger: &Ledger, left: Option<Left>, force: bool) -> Result<(), Error> {
        let place = 1 - self.forced_place;
        let has_note = left.is_some();
        mark::store(place, &Record::new(self.number + 1, ledger.timeline(), left), force)?;
        self.number += 1;
        self.has_note = has_note;
        if force {
            self.forced_place = place;
        }
        Ok(())
    }

    /// Says by how much the clock was set since this was asked last, in microseconds; 0 when it was not.
    pub(super) fn clock_step(&mut self) -> i64 {
        let (now, steady) = (clock::now(), clock::steady());
        let Some((offset, at)) = self.offset.replace((now - steady, steady)) else { return 0 };
        let step = now - steady - offset;
        // A clock that is slewed is off by at most a thousandth of the time.
        if step.abs() > 250_000 + (steady - at) / 1000 { step } else { 0 }
    }
}
