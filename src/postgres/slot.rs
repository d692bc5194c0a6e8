//! The slot that PostgreSQL has given this session.
#![allow(unsafe_code, reason = "reads PostgreSQL's variables")]

use flake_core::{Error, Slot};
use pgrx::pg_sys;

/// The number of this server process among all that can exist at a time, and how many those are.
pub fn numbers() -> (u32, u32) {
    // SAFETY: both are set before a server process runs its first statement and do not change after.
    let (number, count) = unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let number = (*pg_sys::MyProc).pgprocno;
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        let number = pg_sys::MyProcNumber;
        (number, pg_sys::MaxBackends)
    };
    (number as u32, count as u32)
}

/// The slot, as shares are made for it.
pub fn slot() -> Result<Slot, Error> {
    let (number, count) = numbers();
    Slot::new(number, count)
}
