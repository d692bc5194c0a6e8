//! Reads the clock; no other file does. Instants are microseconds since 1970-01-01T00:00:00Z.

/// The current instant by the server's clock.
#[inline]
pub fn now() -> i64 {
    read(libc::CLOCK_REALTIME)
}

/// The steady clock in microseconds: it is never set, and all processes of the machine share it.
pub fn monotonic() -> i64 {
    #[cfg(target_os = "linux")]
    let clock = libc::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    let clock = libc::CLOCK_MONOTONIC;
    read(clock)
}

/// SystemTime would be slower, and an Instant has no meaning in another process.
#[inline]
#[allow(unsafe_code, reason = "calls the C library")]
fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes to the variable that it is given.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * 1_000_000 + time.tv_nsec / 1000
}
