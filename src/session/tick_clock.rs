//! The clock of a generator, read a few times per tick instead of once per ID.
//!
//! If the operating system tells the time by the processor's time stamp counter, that counter shows, without a system call, that a
//! tick has not ended: even the slowest processor would take longer for so few counts. So a tick needs about 40 readings of the
//! clock, however many IDs are made in it, and one more for each step in which IDs are made. If the clock is set, the session
//! notices that a millisecond late at most, which does not affect uniqueness.
#![allow(unsafe_code, reason = "reads the time stamp counter")]

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use flake_core::Remaining;

use crate::ledger;

/// Counts per microsecond, below the rate of every processor whose counter Linux uses as a clock: they have 800 or more.
const MIN_RATE: u64 = 500;
/// Counts per microsecond of a typical processor. Only the order of IDs of different sessions depends on it.
const USUAL_RATE: u64 = 3000;
/// For how many microseconds a reading is used at most.
const MAX_READING_AGE_MICROS: u64 = 1000;
/// After this many microseconds, a session checks again whether the operating system uses the counter.
const RECHECK_MICROS: u64 = 2_000_000;

/// Whether the counter is reliable, and when that was checked.
static RELIABLE: AtomicBool = AtomicBool::new(false);
static CHECKED: AtomicI64 = AtomicI64::new(i64::MIN);

/// A reading of the clock, and for how many counts it may be used.
#[derive(Default)]
pub struct TickClock {
    now: i64,
    read_at: u64,
    valid_counts: u64,
}

impl TickClock {
    /// Returns an instant in the current tick, perhaps a little in the past, or None if the clock must be read.
    #[inline]
    pub fn known(&self) -> Option<i64> {
        (count().wrapping_sub(self.read_at) < self.valid_counts).then_some(self.now)
    }

    /// Reads flake's time by `time`. The reading is used for this call only, unless [`Self::keep`] is called.
    #[inline]
    pub fn read(&mut self, time: impl FnOnce() -> i64) -> i64 {
        // The counter is read before the clock, so that the time in between counts as passed.
        self.read_at = count();
        self.now = time();
        self.valid_counts = 0;
        self.now
    }

    /// Forgets the last reading, because it must not be used in another transaction.
    pub const fn forget(&mut self) {
        self.valid_counts = 0;
    }

    /// Keeps the last reading for as long as the generator's tick and step last after it.
    pub fn keep(&mut self, Remaining { of_tick, of_step }: Remaining) {
        // The reading is rounded down to a microsecond.
        let in_tick = of_tick.saturating_sub(1).min(MAX_READING_AGE_MICROS) * MIN_RATE;
        let in_step = of_step.min(MAX_READING_AGE_MICROS) * USUAL_RATE;
        self.valid_counts = if is_reliable(self.now) { in_tick.min(in_step) } else { 0 };
    }
}

/// Returns whether the operating system uses the counter as its clock. It stops using the counter when it finds it unreliable.
#[inline]
fn is_reliable(now: i64) -> bool {
    if is_due(&CHECKED, now) {
        CHECKED.store(now, Ordering::Relaxed);
        RELIABLE.store(check(now), Ordering::Relaxed);
    }
    RELIABLE.load(Ordering::Relaxed)
}

fn is_due(checked: &AtomicI64, now: i64) -> bool {
    now.wrapping_sub(checked.load(Ordering::Relaxed)) as u64 > RECHECK_MICROS
}

/// Reads the current clock source, unless another session has just done so.
#[cold]
fn check(now: i64) -> bool {
    let Some(system) = ledger::system() else { return is_clock_source() };
    if is_due(&system.looked_at, now) {
        system.uses_counter.store(is_clock_source(), Ordering::Relaxed);
        system.looked_at.store(now, Ordering::Relaxed);
    }
    system.uses_counter.load(Ordering::Relaxed)
}

/// On other systems than Linux on x86-64, flake does not know how the counter behaves.
fn is_clock_source() -> bool {
    let is_known = cfg!(all(target_arch = "x86_64", target_os = "linux"));
    let source = || std::fs::read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    is_known && source().is_ok_and(|source| source == b"tsc\n")
}

#[inline]
fn count() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    return 0;
}
