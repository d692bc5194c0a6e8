//! The PostgreSQL extension: it unpacks arguments, calls `flake-core`, and returns the result or raises the error.
//!
//! The modules are rooms, and imports go down this list only: `functions` (what SQL calls), `sno` (the type and its
//! functions), `seal` (the keys of public IDs), `session` (this backend's generators), `layouts` (a layout by its name), `ledger` (what all sessions share),
//! `settings`, `error`, `postgres` (what is PostgreSQL's), `clock`. `sql/flake.sql` declares the SQL objects.

// An error of PostgreSQL unwinds through Rust frames; without unwinding it would end the whole server.
#[cfg(not(panic = "unwind"))]
compile_error!("flake has to be built with panic = \"unwind\"");

mod clock;
mod error;
mod functions;
mod layouts;
mod ledger;
mod postgres;
mod seal;
mod session;
mod settings;
mod sno;

use std::ffi::CStr;

use pgrx::prelude::*;

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("the version contains a NUL"),
};

pgrx::pg_module_magic!(name = c"flake", version = VERSION);

/// PostgreSQL calls this once, when it loads the library; again, if it did not come to its end.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    // An invalid value that a client has set before raises a WARNING, after which PostgreSQL looks for cancellations.
    postgres::interrupts::hold(|| {
        postgres::backtrace::disable();
        settings::define();
        layouts::custom::subscribe();
        seal::keyring::subscribe();
        ledger::preload();
        session::stores::subscribe();
        postgres::relation_hook::subscribe([functions::filter::TIME_FUNCTION, sno::filter::TIME_FUNCTION]);
    });
}
