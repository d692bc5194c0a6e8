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

/// How many faults are described. Others may have made any number of them.
const DESCRIBED: usize = 10;

/// Describes the first faults, each in a sentence, and says how many others there are.
pub fn described<'a>(faults: impl ExactSizeIterator<Item = &'a String>) -> String {
    first(faults, DESCRIBED)
}

/// Returns the first of these sentences, and says how many others there are.
pub fn first<'a>(sentences: impl ExactSizeIterator<Item = &'a String>, most: usize) -> String {
    let more = sentences.len().saturating_sub(most);
    let shown = sentences.take(most).cloned().chain((more > 0).then(|| format!("There are {more} more.")));
    shown.collect::<Vec<_>>().join(" ")
}

impl From<&Error> for Finding {
    fn from(error: &Error) -> Self {
        Self { ok: Some(false), detail: error.detail.clone(), hint: error.hint.clone() }
    }
}
