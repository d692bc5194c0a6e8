//! The result of a check.

use crate::error::Error;

/// A row of flake_check without the name of the check.
pub struct Finding {
    /// NULL if this session cannot tell.
    pub ok: Option<bool>,
    pub detail: String,
    pub hint: Option<String>,
}

impl Finding {
    pub fn fine(detail: impl Into<String>) -> Self {
        Self { ok: Some(true), detail: detail.into(), hint: None }
    }

    pub fn wrong(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { ok: Some(false), detail: detail.into(), hint: Some(hint.into()) }
    }

    pub fn unknown(detail: impl Into<String>) -> Self {
        Self { ok: None, detail: detail.into(), hint: None }
    }
}

impl From<&Error> for Finding {
    fn from(error: &Error) -> Self {
        Self { ok: Some(false), detail: error.detail.clone(), hint: error.hint.clone() }
    }
}
