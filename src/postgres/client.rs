//! The client of this session: its application_name and address, and the process that serves it.
#![allow(unsafe_code, reason = "reads variables of PostgreSQL")]

use std::ffi::CStr;

use pgrx::{Inet, direct_function_call, pg_sys};

/// Returns the number of this process.
pub fn pid() -> i32 {
    // SAFETY: it reads a variable of this process.
    unsafe { pg_sys::MyProcPid }
}

/// Returns the address of the client; empty for a local socket.
pub fn address() -> Vec<u8> {
    // SAFETY: the function takes no arguments, and returns an inet or NULL.
    let address = unsafe { direct_function_call::<Inet>(pg_sys::inet_client_addr, &[]) };
    address.map(|Inet(text)| text.into_bytes()).unwrap_or_default()
}

/// Returns the application_name.
pub fn application() -> &'static [u8] {
    // SAFETY: it is a C string, or NULL.
    let set = unsafe { pg_sys::application_name.as_ref().map(|first| CStr::from_ptr(first).to_bytes()) };
    set.unwrap_or_default()
}

/// Returns a text, cut off if it does not fit, padded with zeros.
pub fn padded<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    let length = text.len().min(N);
    padded[..length].copy_from_slice(&text[..length]);
    padded
}

/// Returns a text without its padding.
pub fn text(padded: &[u8]) -> String {
    let end = padded.iter().position(|&byte| byte == 0).unwrap_or(padded.len());
    String::from_utf8_lossy(&padded[..end]).into_owned()
}
