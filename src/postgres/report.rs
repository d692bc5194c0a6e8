//! Messages that do not end the statement.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name};

/// Sends a WARNING to the client.
pub fn warning(message: String, detail: Option<&str>, hint: &str) {
    let mut report = ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, function_name!()).set_hint(hint);
    if let Some(detail) = detail {
        report = report.set_detail(detail);
    }
    report.report(PgLogLevel::WARNING);
}

/// Writes to the server's log.
pub fn log(message: String) {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, function_name!()).report(PgLogLevel::LOG);
}
