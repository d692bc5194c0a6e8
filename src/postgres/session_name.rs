//! The application_name of this session.
#![allow(unsafe_code, reason = "reads a variable of PostgreSQL")]

use std::ffi::CStr;

use pgrx::pg_sys;

/// Returns the application_name, cut off if it does not fit, padded with zeros.
pub fn application() -> [u8; 64] {
    let mut name = [0; 64];
    // SAFETY: it is a C string, or NULL.
    let set = unsafe { pg_sys::application_name.as_ref().map(|first| CStr::from_ptr(first).to_bytes()) };
    let set = set.unwrap_or_default();
    let length = set.len().min(name.len());
    name[..length].copy_from_slice(&set[..length]);
    name
}
