//! Messages that do not end the statement.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name};

use super::interrupts::InterruptHoldoff;

/// Sends a WARNING to the client.
pub fn warning(message: String, detail: Option<&str>, hint: &str) {
    let mut report = ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, function_name!()).set_hint(hint);
    if let Some(detail) = detail {
        report = report.set_detail(detail);
    }
    send(report, PgLogLevel::WARNING);
}

/// Sends a NOTICE to the client.
pub fn notice(message: String, detail: &str) {
    let report = ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, function_name!());
    send(report.set_detail(detail), PgLogLevel::NOTICE);
}

/// Writes to the server's log.
pub fn log(message: String) {
    let report = ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, function_name!());
    send(report, PgLogLevel::LOG);
}

/// After each message PostgreSQL processes cancellations, so they are held: callers may have borrowed the session's generators.
fn send(report: ErrorReport, level: PgLogLevel) {
    let _held = InterruptHoldoff::new();
    report.report(level);
}
