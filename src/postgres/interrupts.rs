//! Cancellations and terminations, which PostgreSQL acts on where it looks for them.
#![allow(unsafe_code, reason = "a counter of PostgreSQL's")]

use pgrx::pg_sys;

/// Has PostgreSQL look for no cancellation before `act` has ended: it would leave over the heads of Rust's frames, and of what
/// is half done. The next place that expects it acts on it.
pub fn hold<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: a counter of this process, which PostgreSQL itself sets back to 0 where an error leaves from `act`.
    unsafe { pg_sys::InterruptHoldoffCount += 1 };
    let done = act();
    // SAFETY: as above.
    unsafe { pg_sys::InterruptHoldoffCount -= 1 };
    done
}
