//! Changes settings for the duration of a call.
#![allow(unsafe_code, reason = "sets PostgreSQL's settings")]

use std::ffi::CStr;

use pgrx::pg_sys;

/// Calls `act` with other values of settings. After an error, PostgreSQL restores them at the end of the transaction or
/// subtransaction.
pub fn with<R>(settings: &[(&CStr, &CStr)], act: impl FnOnce() -> R) -> R {
    // SAFETY: it sets variables of this process, and sets them back.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        for (name, value) in settings {
            pg_sys::set_config_option(
                name.as_ptr(),
                value.as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
        }
        let result = act();
        pg_sys::AtEOXact_GUC(false, level);
        result
    }
}

/// Returns how long the session waits for a lock, in milliseconds; 0 is forever.
pub fn lock_timeout() -> i32 {
    // SAFETY: a variable of this process.
    unsafe { pg_sys::LockTimeout }
}
