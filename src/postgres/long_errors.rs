//! Errors that PostgreSQL and functions of others raise while the library calls them: triggers, checks, functions of a query that is
//! planned.
//!
//! pgrx catches such an error, copies it, and raises the same error again. If the system refused the memory for the copy, the server
//! would end: for a long text because Rust asks for it, for any text because pgrx expects no error there. So a long text is cut off
//! before, and where even the reserve is of no help, the session ends instead.
#![allow(unsafe_code, reason = "PostgreSQL's errors")]

use std::ffi::{CStr, c_char, c_int, c_void};

use pgrx::{PgLogLevel, pg_sys};

use super::memory;

/// How many bytes of a text remain.
const MAX_BYTES: c_int = 20_000;

/// The bits of a code that tell its class, and the classes 00 and 01, of messages after which a function continues.
const CLASS: c_int = 0xfff;
const MESSAGES: [c_int; 2] = [0, 1 << 6];

unsafe extern "C-unwind" {
    // pgrx's own declarations are guarded: after an error in here, pgrx would copy the long one.
    fn geterrcode() -> c_int;
    fn CopyErrorData() -> *mut pg_sys::ErrorData;
    fn FreeErrorData(error: *mut pg_sys::ErrorData);
    fn pg_mbcliplen(text: *const c_char, length: c_int, limit: c_int) -> c_int;
    fn errmsg_internal(format: *const c_char, ...) -> c_int;
    fn errdetail_internal(format: *const c_char, ...) -> c_int;
    fn errhint(format: *const c_char, ...) -> c_int;
}

/// Returns a callback that PostgreSQL calls with each error, and each other message, before it leaves the function that has raised it.
#[inline]
pub fn callback() -> pg_sys::ErrorContextCallback {
    // SAFETY: variables of this process.
    let (previous, catcher) = unsafe { (pg_sys::error_context_stack, pg_sys::PG_exception_stack) };
    pg_sys::ErrorContextCallback { previous, callback: Some(at_error), arg: catcher.cast() }
}

unsafe extern "C-unwind" fn at_error(catcher: *mut c_void) {
    // SAFETY: an error is being raised.
    unsafe {
        // PostgreSQL itself catches an error of the library's own.
        if pg_sys::PG_exception_stack.cast() == catcher || MESSAGES.contains(&(geterrcode() & CLASS)) {
            return;
        }
        if !memory::ensure_memory_left() {
            memory::refuse_call(PgLogLevel::FATAL);
        }
        if !pg_sys::CurTransactionContext.is_null() {
            shorten();
        }
    }
}

/// Cuts off long texts of the error that is being raised.
unsafe fn shorten() {
    // SAFETY: as the caller promises. Only a copy of the error can be read, which is freed with the transaction at the latest. If the
    // memory for it is refused, PostgreSQL raises that error instead. The texts, if there are any, are C strings in the encoding of the
    // database, and arguments of the format.
    unsafe {
        let own = pg_sys::CurrentMemoryContext;
        pg_sys::CurrentMemoryContext = pg_sys::CurTransactionContext;
        let error = CopyErrorData();
        pg_sys::CurrentMemoryContext = own;
        let cut = |text: *mut c_char, set: unsafe extern "C-unwind" fn(*const c_char, ...) -> c_int| {
            let length = text.as_ref().map_or(0, |text| CStr::from_ptr(text).count_bytes() as c_int);
            if length > MAX_BYTES {
                set(c"%.*s...".as_ptr(), pg_mbcliplen(text, length, MAX_BYTES), text);
            }
        };
        cut((*error).message, errmsg_internal);
        cut((*error).detail, errdetail_internal);
        cut((*error).hint, errhint);
        FreeErrorData(error);
    }
}
