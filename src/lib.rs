//! The PostgreSQL side of flake: it unpacks arguments, asks `flake-core`, and maps the answer or the error.
//!
//! The SQL objects are declared by hand in `sql/flake.sql`; each function there names its `#[pg_extern]` here.

// An error of PostgreSQL unwinds through Rust frames; without unwinding it would take the whole server down.
#[cfg(not(panic = "unwind"))]
compile_error!("flake has to be built with panic = \"unwind\"");

use std::ffi::CStr;

use pgrx::prelude::*;

mod batch;
mod call;
mod clock;
mod custom;
mod decode;
mod delays;
mod error;
mod forms;
mod generate;
mod generators;
mod json;
mod layouts;
mod ledger;
mod mark;
mod memory;
mod place;
mod planner;
mod ranges;
mod recovery;
mod settings;
mod sno;
mod stats;
mod tick_clock;
mod wait;

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version has no NUL"),
};

pgrx::pg_module_magic!(name = c"flake", version = VERSION);

/// Called once by PostgreSQL when it loads the library.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    settings::define();
    custom::watch();
    ledger::preload();
}
