//! The proc of this session: its PGPROC number.
#![allow(unsafe_code, reason = "reads PostgreSQL's variables")]

use pgrx::pg_sys;

/// Returns the proc's number, which is less than MaxBackends, and MaxBackends.
pub fn numbers() -> (u32, u32) {
    // SAFETY: PostgreSQL sets both before a backend runs its first statement, and does not change them.
    let (number, count) = unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let number = (*pg_sys::MyProc).pgprocno;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
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
