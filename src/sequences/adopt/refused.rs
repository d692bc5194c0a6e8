//! The error of a table or a sequence that cannot be adopted.

use pgrx::PgSqlErrorCode;

use crate::error::{Error, Undetailed};

/// Returns the error of a table or a sequence that cannot be adopted.
pub fn unadoptable(relation: &str, sqlstate: PgSqlErrorCode) -> Undetailed {
    Error::of(sqlstate, format!("cannot adopt {relation}"))
}
