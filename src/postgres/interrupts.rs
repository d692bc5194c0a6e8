//! Cancellations and terminations, which PostgreSQL acts on where it looks for them.
#![allow(unsafe_code, reason = "PostgreSQL's counter and latch")]

use core::ffi::c_long;

use pgrx::{check_for_interrupts, pg_sys};

/// Postpones cancellations until `act` has ended: PostgreSQL's error would jump over Rust's frames and leave work half done. The
/// next place that looks for interrupts acts on them.
pub fn hold<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: a counter of this process, which PostgreSQL itself sets back to 0 where an error leaves from `act`.
    unsafe { pg_sys::InterruptHoldoffCount += 1 };
    let done = act();
    // SAFETY: as above.
    unsafe { pg_sys::InterruptHoldoffCount -= 1 };
    done
}

/// Sleeps for so many milliseconds, or until the session's latch is set. It can be canceled. `event` is what pg_stat_activity shows.
pub fn sleep(milliseconds: c_long, event: u32) {
    let wake_on = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    check_for_interrupts!();
    // SAFETY: MyLatch is the latch of this process while it runs.
    unsafe {
        let events = pg_sys::WaitLatch(pg_sys::MyLatch, wake_on as i32, milliseconds, event);
        if events & pg_sys::WL_LATCH_SET as i32 != 0 {
            pg_sys::ResetLatch(pg_sys::MyLatch);
        }
    }
    check_for_interrupts!();
}
