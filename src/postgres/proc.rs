//! The proc of this session: its PGPROC number.
#![allow(unsafe_code, reason = "reads PostgreSQL's variables")]

use pgrx::pg_sys;

/// Returns the proc's number, which is less than MaxBackends.
pub fn number() -> u32 {
    // SAFETY: PostgreSQL sets it before a backend runs its first statement, and does not change it.
    let number = unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let number = (*pg_sys::MyProc).pgprocno;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        let number = pg_sys::MyProcNumber;
        number
    };
    number as u32
}

/// Returns MaxBackends, once PostgreSQL has computed it.
pub fn count() -> u32 {
    // SAFETY: it is a variable that only changes while the server starts.
    unsafe { pg_sys::MaxBackends as u32 }
}
