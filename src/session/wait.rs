//! Waits for the next tick: a session sleeps while the end is far, spins when it is near, and can be interrupted at any time.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use pgrx::check_for_interrupts;

use crate::postgres::interrupts;

/// The longest sleep. After it, the session reads the clock again, because the clock may have been set.
const MAX_SLEEP: Duration = Duration::from_millis(100);
/// A shorter sleep cannot be interrupted, which does not matter for so short a time.
const MIN_INTERRUPTIBLE_SLEEP: Duration = Duration::from_millis(2);
/// A sleep may last this much longer than requested, so the session spins at the end of a wait.
const OVERSLEEP: Duration = Duration::from_micros(25);
/// The longest spin, because the clock may stand still.
const MAX_SPIN: Duration = Duration::from_millis(1);

/// Returns the wait event that pg_stat_activity shows.
fn wait_event() -> u32 {
    static NUMBER: OnceLock<u32> = OnceLock::new();
    *NUMBER.get_or_init(|| interrupts::wait_event(c"FlakeNextTick"))
}

/// A wait for one ID, in several pauses.
#[derive(Default)]
pub struct Wait {
    since: Option<Instant>,
    /// For how many microseconds to wait.
    next: Option<i64>,
    spinning_since: Option<Instant>,
}

impl Wait {
    /// Starts to measure the wait, unless it has started. The next pause is a part of `remaining` microseconds.
    pub fn begin(&mut self, remaining: i64) {
        self.since.get_or_insert_with(Instant::now);
        self.next = Some(remaining);
    }

    /// Returns how long the wait has lasted by the steady clock; zero if it has not started.
    pub fn lasted(&self) -> Duration {
        self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Waits for a while, after which the caller reads the clock again. If the statement is canceled, this raises PostgreSQL's error.
    pub fn pause(&mut self) {
        check_for_interrupts!();
        let Some(remaining) = self.next.take() else { return };
        let remaining = Duration::from_micros(remaining.max(0).unsigned_abs());
        if remaining <= OVERSLEEP {
            let since = *self.spinning_since.get_or_insert_with(Instant::now);
            if since.elapsed() < MAX_SPIN {
                return (0..50).for_each(|_| std::hint::spin_loop());
            }
        }
        match remaining.checked_sub(OVERSLEEP) {
            Some(_) if remaining > MIN_INTERRUPTIBLE_SLEEP => {
                let milliseconds = remaining.min(MAX_SLEEP).as_millis() as core::ffi::c_long - 1;
                interrupts::sleep(milliseconds.max(1), wait_event());
            }
            Some(short) if !short.is_zero() => nap(short),
            _ => nap(MAX_SPIN),
        }
    }
}

/// Sleeps. By default, Linux may add 50 microseconds, so that several timers end together.
fn nap(duration: Duration) {
    let slack = |nanoseconds: libc::c_ulong| {
        #[cfg(target_os = "linux")]
        #[allow(unsafe_code, reason = "std has no call for it")]
        // SAFETY: it sets a number of this thread; 0 restores the default.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, nanoseconds)
        };
    };
    slack(1);
    std::thread::sleep(duration);
    slack(0);
}
