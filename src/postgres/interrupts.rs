//! Cancellations and terminations, which PostgreSQL processes at certain points, and how waits are shown.
#![allow(unsafe_code, reason = "PostgreSQL's counter, latch and wait events")]

use core::ffi::{CStr, c_long};

use pgrx::{check_for_interrupts, pg_sys};

/// Postpones cancellations until it is dropped. PostgreSQL processes them at the next point.
pub struct InterruptHoldoff(());

impl InterruptHoldoff {
    pub fn new() -> Self {
        // SAFETY: a counter of this process.
        unsafe { pg_sys::InterruptHoldoffCount += 1 };
        Self(())
    }
}

impl Drop for InterruptHoldoff {
    fn drop(&mut self) {
        // PostgreSQL resets the counter to 0 when it raises an error.
        // SAFETY: a counter of this process.
        unsafe { pg_sys::InterruptHoldoffCount = pg_sys::InterruptHoldoffCount.saturating_sub(1) };
    }
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

/// Returns the number of a wait event, which is the same in all sessions. Before version 17, pg_stat_activity shows "Extension"
/// for all of them.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub fn wait_event(_name: &CStr) -> u32 {
    pg_sys::PG_WAIT_EXTENSION
}

/// Returns the number of a wait event, which is the same in all sessions. May raise an error.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub fn wait_event(name: &CStr) -> u32 {
    // SAFETY: it copies the name.
    unsafe { pg_sys::WaitEventExtensionNew(name.as_ptr()) }
}
