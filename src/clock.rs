//! The one place that reads the clock, and instants as SQL has them.

/// From 1970-01-01, where the core counts from, to 2000-01-01, where PostgreSQL does, in microseconds.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// Microseconds since 1970-01-01T00:00:00Z by the server's clock.
#[inline]
pub fn now() -> i64 {
    read(libc::CLOCK_REALTIME)
}

/// Microseconds by a clock that is never set, the same for all processes of the machine.
pub fn steady() -> i64 {
    #[cfg(target_os = "linux")]
    let clock = libc::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    let clock = libc::CLOCK_MONOTONIC;
    read(clock)
}

/// std would take its types apart and together again, and its Instant says nothing to another process.
#[inline]
#[allow(unsafe_code, reason = "a call of the system library")]
fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to the variable it is given.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * 1_000_000 + time.tv_nsec / 1000
}

/// A `timestamptz` as an instant. Infinities and the last years of timestamptz become the ends of i64, which no layout
/// reaches.
pub fn instant(timestamptz: i64) -> i64 {
    match timestamptz {
        i64::MIN => i64::MIN,
        at => at.saturating_add(POSTGRES_EPOCH),
    }
}

/// An instant as a `timestamptz`.
pub fn timestamptz(instant: i64) -> i64 {
    match instant {
        i64::MIN | i64::MAX => instant,
        at => at.saturating_sub(POSTGRES_EPOCH),
    }
}
