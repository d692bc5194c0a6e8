//! How PostgreSQL gets into the library: where errors of Rust become errors of PostgreSQL.
#![allow(unsafe_code, reason = "PostgreSQL's errors")]

use std::panic;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pgrx::pg_sys::panic::pgrx_extern_c_guard;
use pgrx::{PgLogLevel, pg_sys};

use super::{long_errors, memory};

/// Prepares for panics, as which errors are raised. At the first one, pgrx asks libc for memory, and the process would end if that was
/// refused.
pub fn prepare() {
    static IS_READY: AtomicBool = AtomicBool::new(false);
    let pgrx = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !IS_READY.swap(true, Relaxed) {
            memory::ensure_memory_left();
        }
        pgrx(panic);
    }));
}

/// Calls a function that guards itself. Raises an error instead if the system refuses memory.
///
/// # Safety
/// Errors jump over the frames of the caller, up to the entry point, so these may hold nothing that must be dropped.
pub unsafe fn with_memory_reserve<R>(act: impl FnOnce() -> R) -> R {
    // SAFETY: as the caller promises. After an error, PostgreSQL restores the stack of callbacks.
    unsafe {
        if !memory::is_reserved() {
            memory::refuse_call(PgLogLevel::ERROR);
        }
        let mut at_errors = long_errors::callback();
        pg_sys::error_context_stack = &raw mut at_errors;
        let result = act();
        pg_sys::error_context_stack = at_errors.previous;
        result
    }
}

/// Calls a function, and raises its panics as errors. Where an entry point seldom needs this, its usual way stays short.
///
/// # Safety
/// As for [`with_memory_reserve`].
#[cold]
#[inline(never)]
pub unsafe fn guarded<R>(act: impl FnOnce() -> R) -> R {
    // SAFETY: as the caller promises.
    unsafe { with_memory_reserve(|| pgrx_extern_c_guard(act)) }
}
