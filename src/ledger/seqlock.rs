//! A seqlock around the ledger's window and era: sessions read them without a lock, and read again if a writer interfered.
//! A writer that the operating system has stopped may interfere for long, so they take its lock in the end.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use flake_core::{Ledger, Window};

/// A writer takes less time than some of these attempts, if it runs.
const ATTEMPTS: usize = 1000;

/// The window and the era; `version` is odd while they change. Writers hold the control block's lock.
#[derive(Default)]
#[repr(C)]
pub struct WindowSeqlock {
    version: AtomicU64,
    from: AtomicI64,
    until: AtomicI64,
    skip: AtomicI64,
    era: AtomicU64,
}

impl WindowSeqlock {
    pub fn write(&self, ledger: &Ledger) {
        let window = ledger.window();
        self.version.fetch_add(1, Ordering::AcqRel);
        self.from.store(window.from, Ordering::Release);
        self.until.store(window.until, Ordering::Release);
        self.skip.store(window.skip, Ordering::Release);
        self.era.store(ledger.era(), Ordering::Release);
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
            std::hint::spin_loop();
        }
        None
    }
}
