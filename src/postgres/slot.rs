//! The slot that PostgreSQL has given this session.
#![allow(unsafe_code, reason = "reads PostgreSQL's variables")]

use flake_core::{Error, Slot, absent};
use pgrx::pg_sys;

/// Returns the slot's number, which is less than MaxBackends, and MaxBackends.
pub fn numbers() -> (u32, u32) {
    // SAFETY: PostgreSQL sets both before a backend runs its first statement, and does not change them.
    let (number, count) = unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let number = (*pg_sys::MyProc).pgprocno;
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        let number = pg_sys::MyProcNumber;
        (number, pg_sys::MaxBackends)
    };
    (number as u32, count as u32)
}

/// Returns MaxBackends, once PostgreSQL has computed it.
pub fn count() -> u32 {
    // SAFETY: it is a variable that only changes while the server starts.
    unsafe { pg_sys::MaxBackends as u32 }
}

/// Returns the slot as shares need it.
pub fn slot() -> Result<Slot, Error> {
    let (number, count) = numbers();
    if absent!(SlotShare) {
        return Slot::new(0, count);
    }
    if absent!(SlotOfWorkers) {
        // SAFETY: PostgreSQL sets it before a backend runs its first statement, and does not change it.
        let of_clients = unsafe { pg_sys::MaxConnections } as u32;
        return Slot::new(number.min(of_clients), count);
    }
    Slot::new(number, count)
}
