//! Errors as PostgreSQL reports them, and how they are raised. The line that raises an error says all of it; `core` says what belongs
//! to the core's errors.

mod core;
mod privilege;
mod raise;

use pgrx::PgSqlErrorCode::{self, *};

pub use self::core::SEE_FIELDS;
pub use self::privilege::{monitor_only, must_own, owner_only, superuser_only};
pub use self::raise::{OrRaise, errsave};

/// An error of the extension. Most have a HINT.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub sqlstate: PgSqlErrorCode,
    message: String,
    pub detail: String,
    pub hint: Option<String>,
}

/// An error that needs a DETAIL.
pub struct Undetailed(PgSqlErrorCode, String);

impl Undetailed {
    pub fn detail(self, detail: impl Into<String>) -> Error {
        Error { sqlstate: self.0, message: self.1, detail: detail.into(), hint: None }
    }
}

impl Error {
    /// Something has to be done before, or the time is not right (55000).
    pub fn not_ready(message: impl Into<String>) -> Undetailed {
        Self::of(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
    }

    /// An argument has a wrong value (22023).
    pub fn invalid(message: impl Into<String>) -> Undetailed {
        Self::of(ERRCODE_INVALID_PARAMETER_VALUE, message)
    }

    pub fn of(sqlstate: PgSqlErrorCode, message: impl Into<String>) -> Undetailed {
        Undetailed(sqlstate, message.into())
    }

    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Lists the first hundred names, and how many others there are.
pub fn listed<'a>(names: impl ExactSizeIterator<Item = &'a String>, others: &str) -> String {
    const SHOWN: usize = 100;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown}, and {more} {others}") }
}

/// Returns the error of a function that returns a row, if the type that the extension has declared for it was altered.
pub fn altered_type(name: &str) -> Error {
    Error::not_ready(format!("type {name} has been altered"))
        .detail("The function returns the columns that the extension has declared.")
        .hint("Undo the change, or create the extension again.")
}
