//! The window: the time that generators may use, and how sessions read it without a lock.

use crate::instant::{BEGINNING, NEVER};
use crate::sync::{AtomicI64, AtomicU64, Ordering, spin_loop};

/// How often a reader retries. A writer that is running finishes within a few retries.
const ATTEMPTS: usize = if cfg!(loom) { 1 } else { 1000 };

/// The time that generators may use without asking the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Ticks that end before this instant are closed.
    pub from: i64,
    /// Ticks that start at or after this instant are closed.
    pub until: i64,
    /// Ticks that end after this instant are closed.
    pub skip: i64,
}

impl Window {
    /// All time.
    pub const ALL: Self = Self { from: BEGINNING, until: NEVER, skip: NEVER };
    /// No time.
    pub const NONE: Self = Self { from: BEGINNING, until: BEGINNING, skip: NEVER };

    /// Returns, for ticks of this length, the first open instant at which a tick can begin, and for how long such instants follow.
    pub(crate) fn starts(self, length: i64) -> (i64, u64) {
        let first = if self.from == BEGINNING { BEGINNING } else { self.from.saturating_sub(length - 1) };
        let skip = if self.skip == NEVER { NEVER } else { self.skip.saturating_sub(length - 1) };
        (first, self.until.min(skip).max(first).wrapping_sub(first) as u64)
    }

    /// Returns whether a tick is open that contains `now` and ends at `tick_end`.
    pub const fn holds(&self, now: i64, tick_end: i64) -> bool {
        self.from <= now && now < self.until && tick_end <= self.skip
    }
}

/// The window and the era, read without a lock. The problem: a reader could see half of one window and half of another one.
/// `version` is odd while a writer changes them, so a reader retries if it finds `version` odd or changed. If the operating system
/// has suspended the writer, all retries may fail, so after some of them the reader takes the lock.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SharedWindow {
    version: AtomicU64,
    from: AtomicI64,
    until: AtomicI64,
    skip: AtomicI64,
    era: AtomicU64,
}

impl SharedWindow {
    /// Writes both. The caller holds the ledger's lock.
    pub fn write(&self, window: Window, era: u64) {
        self.version.fetch_add(1, Ordering::AcqRel);
        self.from.store(window.from, Ordering::Release);
        self.until.store(window.until, Ordering::Release);
        self.skip.store(window.skip, Ordering::Release);
        self.era.store(era, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the window and the era; None if all retries failed.
    pub fn try_read(&self) -> Option<(Window, u64)> {
        for _ in 0..ATTEMPTS {
            let before = self.version.load(Ordering::Acquire);
            let from = self.from.load(Ordering::Acquire);
            let until = self.until.load(Ordering::Acquire);
            let skip = self.skip.load(Ordering::Acquire);
            let era = self.era.load(Ordering::Acquire);
            if before.is_multiple_of(2) && self.version.load(Ordering::Acquire) == before {
                return Some((Window { from, until, skip }, era));
            }
            spin_loop();
        }
        None
    }

    /// The era alone. A session checks it whenever it reads the clock.
    #[inline]
    pub fn era(&self) -> u64 {
        self.era.load(Ordering::SeqCst)
    }
}
