//! Messages that do not end the statement.
#![allow(unsafe_code, reason = "a counter of PostgreSQL's")]

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name, pg_sys};

/// Sends a WARNING to the client.
pub fn warning(message: String, detail: Option<&str>, hint: &str) {
    let mut report = ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, function_name!()).set_hint(hint);
    if let Some(detail) = detail {
        report = report.set_detail(detail);
    }
    send(report, PgLogLevel::WARNING);
}

/// Writes to the server's log.
pub fn log(message: String) {
    let report = ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, function_name!());
    send(report, PgLogLevel::LOG);
}

/// PostgreSQL looks for a cancellation after each message, and would leave over the heads of its callers, who may hold a
/// borrow of the session's generators. So the cancellation waits for the next place that expects it.
fn send(report: ErrorReport, level: PgLogLevel) {
    // SAFETY: a counter of this process, which PostgreSQL itself sets back to 0 where an error leaves from here.
    unsafe { pg_sys::InterruptHoldoffCount += 1 };
    report.report(level);
    // SAFETY: as above.
    unsafe { pg_sys::InterruptHoldoffCount -= 1 };
}
