//! The time that generators may use, and how sessions read it without a lock.

use crate::sync::{AtomicI64, AtomicU64, Ordering, spin_loop};

/// A writer takes less time than some of these attempts, if it runs.
const ATTEMPTS: usize = if cfg!(loom) { 1 } else { 1000 };

/// The time that generators may use without asking again.
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
    pub const ALL: Self = Self { from: i64::MIN, until: i64::MAX, skip: i64::MAX };
    /// No time.
    pub const NONE: Self = Self { from: i64::MIN, until: i64::MIN, skip: i64::MAX };

    /// For ticks of this length, returns the first start that is open and how long starts are open from there.
    pub(crate) fn starts(self, length: i64) -> (i64, u64) {
        let first = if self.from == i64::MIN { i64::MIN } else { self.from.saturating_sub(length - 1) };
        let skip = if self.skip == i64::MAX { i64::MAX } else { self.skip.saturating_sub(length - 1) };
        (first, self.until.min(skip).max(first).wrapping_sub(first) as u64)
    }

    /// Returns whether a tick that holds `now` and ends at `tick_end` is open.
    pub const fn holds(&self, now: i64, tick_end: i64) -> bool {
        self.from <= now && now < self.until && tick_end <= self.skip
    }
}

/// The window and the era, to be read without a lock: sessions read again if a writer interfered. `version` is odd while they
/// change. A writer that the operating system has stopped may interfere for long, so they take its lock in the end.
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
    /// Writes both. Writers hold the lock of the ledger.
    pub fn write(&self, window: Window, era: u64) {
        self.version.fetch_add(1, Ordering::AcqRel);
        self.from.store(window.from, Ordering::Release);
        self.until.store(window.until, Ordering::Release);
        self.skip.store(window.skip, Ordering::Release);
        self.era.store(era, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the window and the era; none if a writer interfered for long.
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

    /// The era, which a session looks at wherever it reads the clock.
    #[inline]
    pub fn era(&self) -> u64 {
        self.era.load(Ordering::SeqCst)
    }
}
