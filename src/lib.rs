//! The PostgreSQL extension: it unpacks arguments, calls `flake-core`, and returns the result or raises the error.
//!
//! A module imports only modules after it in this list: `sequences` (sequences whose numbers are IDs),
//! `functions` (the other functions that SQL calls), `sno` (the type and its functions), `seal` (the keys of public IDs),
//! `session` (the generators of this backend), `layouts` (a layout
//! by its name), `ledger` (the state that all sessions share), `settings`, `error`, `postgres` (PostgreSQL's interfaces), `clock`.
//! `sql/flake.sql` declares the SQL objects.

// An error of PostgreSQL unwinds through Rust frames. Without unwinding, it would end the whole server.
#[cfg(not(panic = "unwind"))]
compile_error!("flake has to be built with panic = \"unwind\"");

mod clock;
mod error;
mod functions;
mod layouts;
mod ledger;
mod postgres;
mod seal;
mod sequences;
mod session;
mod settings;
mod sno;

use std::ffi::CStr;

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("the version contains a NUL"),
};

pgrx::pg_module_magic!(name = c"flake", version = VERSION);

/// PostgreSQL calls this when it loads the library, and again if the first call failed.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "a C symbol")]
pub extern "C-unwind" fn _PG_init() {
    // SAFETY: PostgreSQL makes the call.
    unsafe { postgres::guard::guarded(begin) };
}

fn begin() {
    postgres::guard::prepare();
    // If a client has set an invalid value before, this raises a WARNING, after which PostgreSQL would process cancellations.
    let _held = postgres::interrupts::InterruptHoldoff::new();
    postgres::backtrace::disable();
    settings::define();
    layouts::custom::subscribe();
    seal::keyring::subscribe();
    ledger::preload();
    session::stores::subscribe();
    sequences::subscribe();
    postgres::relation_hook::subscribe([functions::filter::TIME_FUNCTION, sno::filter::TIME_FUNCTION]);
}
