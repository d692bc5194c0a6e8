//! Raises errors as PostgreSQL's.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, function_name, pg_sys};

use super::row::Row;
use super::variants::Error;

/// Ends the statement with this error.
#[cold]
pub fn raise(error: impl Into<Error>) -> ! {
    report(error.into(), PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}

/// Sends this error as a WARNING.
pub fn warn(error: impl Into<Error>) {
    report(error.into(), PgLogLevel::WARNING);
}

fn report(error: Error, level: PgLogLevel) {
    let Row { sqlstate, detail, hint } = error.row();
    let mut report = ErrorReport::new(sqlstate, error.to_string(), function_name!()).set_detail(detail);
    if let Some(hint) = hint {
        report = report.set_hint(hint);
    }
    report.report(level);
}

/// Reports an error of an input function. Like PostgreSQL's errsave, it returns if the caller accepts soft errors, as
/// `pg_input_is_valid` and `COPY … ON_ERROR` do since version 16. Otherwise it ends the statement.
#[cfg(not(feature = "pg15"))]
#[allow(unsafe_code, reason = "pgrx does not wrap soft errors")]
pub fn errsave(error: impl Into<Error>, call: pg_sys::FunctionCallInfo) {
    use std::ffi::CString;
    unsafe extern "C-unwind" {
        fn errcode(sqlstate: i32) -> i32;
    }
    let error = error.into();
    // SAFETY: this call is running the function, and its context asks for soft errors only if it is an ErrorSaveContext. PostgreSQL
    // copies the texts, which are arguments of the format "%s".
    unsafe {
        let context = (*call).context;
        if context.is_null() || (*context).type_ != pg_sys::NodeTag::T_ErrorSaveContext {
            raise(error);
        }
        if !pg_sys::errsave_start(context, std::ptr::null()) {
            return;
        }
        let Row { sqlstate, detail, .. } = error.row();
        let text = |text: String| CString::new(text).unwrap_or_default();
        errcode(sqlstate as i32);
        pg_sys::errmsg_internal(c"%s".as_ptr(), text(error.to_string()).as_ptr());
        pg_sys::errdetail_internal(c"%s".as_ptr(), text(detail).as_ptr());
        pg_sys::errsave_finish(context, c"raise.rs".as_ptr(), line!() as i32, c"errsave".as_ptr());
    }
}

/// PostgreSQL 15 does not have soft errors.
#[cfg(feature = "pg15")]
pub fn errsave(error: impl Into<Error>, _call: pg_sys::FunctionCallInfo) {
    raise(error)
}

/// A result whose error ends the statement.
pub trait OrRaise {
    type Value;
    /// Returns the value, or raises the error.
    fn or_raise(self) -> Self::Value;
}

impl<T, E: Into<Error>> OrRaise for Result<T, E> {
    type Value = T;

    #[inline]
    fn or_raise(self) -> T {
        self.unwrap_or_else(|error| raise(error))
    }
}
