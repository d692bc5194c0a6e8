//! Raises errors as PostgreSQL's.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, function_name, pg_sys};

use super::Error;

impl Error {
    /// Ends the statement with this error.
    #[cold]
    pub fn raise(self) -> ! {
        self.report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }

    /// Sends this error as a WARNING.
    pub fn warn(self) {
        self.report(PgLogLevel::WARNING);
    }

    fn report(self, level: PgLogLevel) {
        let mut report = ErrorReport::new(self.sqlstate, self.message, function_name!()).set_detail(self.detail);
        if let Some(hint) = self.hint {
            report = report.set_hint(hint);
        }
        report.report(level);
    }
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
            error.raise();
        }
        if !pg_sys::errsave_start(context, std::ptr::null()) {
            return;
        }
        let Error { sqlstate, message, detail, .. } = error;
        let text = |text: String| CString::new(text).unwrap_or_default();
        errcode(sqlstate as i32);
        pg_sys::errmsg_internal(c"%s".as_ptr(), text(message).as_ptr());
        pg_sys::errdetail_internal(c"%s".as_ptr(), text(detail).as_ptr());
        pg_sys::errsave_finish(context, c"raise.rs".as_ptr(), line!() as i32, c"errsave".as_ptr());
    }
}

/// PostgreSQL 15 does not have soft errors.
#[cfg(feature = "pg15")]
pub fn errsave(error: impl Into<Error>, _call: pg_sys::FunctionCallInfo) {
    error.into().raise()
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
        self.unwrap_or_else(|error| error.into().raise())
    }
}
