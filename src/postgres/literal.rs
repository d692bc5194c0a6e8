//! Literals in the encoding of the database.
#![allow(unsafe_code, reason = "calls PostgreSQL's function")]

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

/// Returns a text as a literal of a statement.
pub fn quoted(text: &[u8]) -> Vec<u8> {
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: it takes a C string and returns one.
    unsafe { CStr::from_ptr(pg_sys::quote_literal_cstr(text.as_ptr())).to_bytes().to_vec() }
}
