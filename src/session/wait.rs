//! Waiting for the clock: asleep while the end is far, spinning when it is near, and always interruptible.

use std::time::{Duration, Instant};

use pgrx::{check_for_interrupts, pg_sys};

/// Slept through in one go; between two of them the clock is read again, in case it was set.
const SLICE: Duration = Duration::from_millis(100);
/// Below this a sleep cannot be interrupted; it is short enough not to matter.
const NAP: Duration = Duration::from_millis(2);
/// A sleep may last this much longer than asked for, so the rest is spun.
const OVERSLEEP: Duration = Duration::from_micros(100);
/// A clock that stands still must not be spun for.
const LONGEST_SPIN: Duration = Duration::from_millis(1);

/// What is waited for.
#[derive(Clone, Copy, PartialEq)]
pub enum Reason {
    /// The next tick, this one's share being used up.
    NextTick,
    /// A clock that is behind the last ID.
    Clock,
}

impl Reason {
    /// What pg_stat_activity shows.
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    fn wait_event(self) -> u32 {
        pg_sys::PG_WAIT_EXTENSION
    }

    /// What pg_stat_activity shows.
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    #[allow(unsafe_code, reason = "registers a name")]
    fn wait_event(self) -> u32 {
        static NUMBERS: [std::sync::OnceLock<u32>; 2] = [const { std::sync::OnceLock::new() }; 2];
        let (number, name) = match self {
            Self::NextTick => (&NUMBERS[0], c"FlakeNextTick"),
            Self::Clock => (&NUMBERS[1], c"FlakeClockBehind"),
        };
        // SAFETY: the name is copied; the same name has the same number in all sessions.
        *number.get_or_init(|| unsafe { pg_sys::WaitEventExtensionNew(name.as_ptr()) })
    }
}

/// One wait, of several pauses.
pub struct Wait {
    started: Instant,
    spinning_since: Option<Instant>,
}

impl Wait {
    pub fn start() -> Self {
        Self { started: Instant::now(), spinning_since: None }
    }

    /// For how long there has been waiting, by a clock that is never set.
    pub fn lasted(&self) -> Duration {
        self.started.elapsed()
    }

    /// Waits for a part of what `remains`, in microseconds; the caller then looks at the clock again. Cancelling the
    /// statement ends it with PostgreSQL's error.
    pub fn pause(&mut self, remains: i64, reason: Reason) {
        check_for_interrupts!();
        let remains = Duration::from_micros(remains.max(0).unsigned_abs());
        if remains <= OVERSLEEP {
            let since = *self.spinning_since.get_or_insert_with(Instant::now);
            if since.elapsed() < LONGEST_SPIN {
                return (0..50).for_each(|_| std::hint::spin_loop());
            }
        }
        match remains.checked_sub(OVERSLEEP) {
            Some(_) if remains > NAP => sleep(remains, reason),
            Some(nap) if !nap.is_zero() => std::thread::sleep(nap),
            _ => std::thread::sleep(OVERSLEEP),
        }
    }
}

/// Sleeps until something happens to this session, at most for the time that remains or a slice of it.
#[allow(unsafe_code, reason = "PostgreSQL's latch")]
fn sleep(remains: Duration, reason: Reason) {
    let milliseconds = remains.min(SLICE).as_millis() as core::ffi::c_long - 1;
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: MyLatch is this process's own latch from its start to its end.
    unsafe {
        let happened = pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, milliseconds.max(1), reason.wait_event());
        if happened & pg_sys::WL_LATCH_SET as i32 != 0 {
            pg_sys::ResetLatch(pg_sys::MyLatch);
        }
    }
    check_for_interrupts!();
}
