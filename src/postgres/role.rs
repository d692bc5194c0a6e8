//! The role that calls.
#![allow(unsafe_code, reason = "asks PostgreSQL")]

use pgrx::pg_sys;

/// Returns whether the present role is a superuser.
pub fn is_superuser() -> bool {
    // SAFETY: it looks the role up in the catalog.
    unsafe { pg_sys::superuser() }
}
