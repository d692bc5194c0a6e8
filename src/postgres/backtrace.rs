//! Rust's backtraces. pgrx appends them to the DETAIL of errors if RUST_BACKTRACE is set for the server.
#![allow(unsafe_code, reason = "sets a variable of the environment")]

use std::backtrace::Backtrace;
use std::env;

/// Decides whether Rust captures backtraces; it takes precedence over RUST_BACKTRACE.
const VARIABLE: &str = "RUST_LIB_BACKTRACE";

/// Turns backtraces off for this library, whatever the server's environment says, because they do not help clients. Rust reads the
/// environment once, so the variable is restored afterwards for other libraries.
pub fn disable() {
    let present = env::var_os(VARIABLE);
    // SAFETY: a process of PostgreSQL has one thread.
    unsafe {
        env::set_var(VARIABLE, "0");
        drop(Backtrace::capture());
        match present {
            Some(value) => env::set_var(VARIABLE, value),
            None => env::remove_var(VARIABLE),
        }
    }
}
