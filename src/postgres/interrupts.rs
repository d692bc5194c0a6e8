//! Cancellations and terminations, which PostgreSQL processes at certain points.
#![allow(unsafe_code, reason = "PostgreSQL's counter and latch")]

use core::ffi::c_long;

use pgrx::{check_for_interrupts, pg_sys};

/// Postpones cancellations until `act` has ended. Otherwise PostgreSQL's error would jump over Rust's frames and leave work half
/// done. PostgreSQL processes them at the next point.
pub fn hold<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: a counter of this process, which PostgreSQL resets to 0 if an error leaves `act`.
    unsafe { pg_sys::InterruptHoldoffCount += 1 };
    let done = act();
    // SAFETY: as above.
    unsafe { pg_sys::InterruptHoldoffCount -= 1 };
    done
}

/// Sleeps for some milliseconds, or until the session's latch is set. It can be canceled. pg_stat_activity shows `event`.
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
