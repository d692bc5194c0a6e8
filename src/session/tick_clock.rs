//! The clock of a generator, read a few times per tick instead of once per ID.
//!
//! Where the operating system itself tells the time by the processor's time stamp counter, that counter can say without
//! its help that a tick has not ended yet: in the time that it has counted a processor of the slowest kind would not have
//! got there. So a tick of N IDs needs about 40 readings of the clock however large N is. When the clock is set, this
//! notices a millisecond later at most; uniqueness does not depend on it.
#![allow(unsafe_code, reason = "reads the time stamp counter")]

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::clock;

/// Counts per microsecond, less than any processor's that Linux takes for a clock: those count 800 or more.
const SLOWEST: u64 = 500;
/// A reading is not relied on for longer than this, in microseconds.
const LONGEST: u64 = 1000;
/// For so many microseconds it is taken for granted that the operating system relies on the counter, or does not.
const CHECK_AFTER: u64 = 2_000_000;

/// Whether the counter can be relied on, and when that was found.
static RELIABLE: AtomicBool = AtomicBool::new(false);
static CHECKED: AtomicI64 = AtomicI64::new(i64::MIN);

/// A reading of the clock, and for how long it is good.
#[derive(Default)]
pub struct TickClock {
    now: i64,
    read_at: u64,
    good_for: u64,
}

impl TickClock {
    /// An instant of the tick that holds the present: not always the present itself. `left_of_tick` says for how many
    /// microseconds from an instant on the tick goes on.
    #[inline]
    pub fn now(&mut self, left_of_tick: impl FnOnce(i64) -> u64) -> i64 {
        if self.good_for > 0 && count().wrapping_sub(self.read_at) < self.good_for {
            return self.now;
        }
        // Before the clock, so that the time in between counts as passed.
        self.read_at = count();
        self.now = clock::now();
        // The clock may be up to a microsecond further than what it says.
        let left = left_of_tick(self.now).saturating_sub(1).min(LONGEST);
        self.good_for = if is_reliable(self.now) { left * SLOWEST } else { 0 };
        self.now
    }
}

/// Whether the operating system relies on the counter, which it stops doing when it finds it unreliable.
#[inline]
fn is_reliable(now: i64) -> bool {
    if now.wrapping_sub(CHECKED.load(Ordering::Relaxed)) as u64 > CHECK_AFTER {
        CHECKED.store(now, Ordering::Relaxed);
        RELIABLE.store(is_clock_source(), Ordering::Relaxed);
    }
    RELIABLE.load(Ordering::Relaxed)
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[cold]
fn is_clock_source() -> bool {
    let source = std::fs::read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    source.is_ok_and(|source| source == b"tsc\n")
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[inline]
fn count() -> u64 {
    // SAFETY: any x86-64 processor has the instruction.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Only x86-64 and Linux are known well enough.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn is_clock_source() -> bool {
    false
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[inline]
fn count() -> u64 {
    0
}
