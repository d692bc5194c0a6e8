//! Makes PostgreSQL's own lastval() return an ID.
//!
//! lastval() returns the last number of the sequence that the session has used last, whichever that is. So after an ID, the session
//! uses one sequence of the extension and sets it to the ID. Native sequences and adopted ones so are in the right order, with
//! whatever search_path and in functions that were made before.
#![allow(unsafe_code, reason = "calls PostgreSQL's functions of sequences")]

use std::cell::Cell;

use pgrx::pg_sys::Oid;

use crate::error::{Error, OrRaise};
use crate::postgres::extension::INTERNAL_SCHEMA;
use crate::postgres::sequence;

thread_local! {
    /// The sequence, and by which changes of the catalog it was found.
    static FOUND: Cell<(u64, Option<Oid>)> = const { Cell::new((0, None)) };
}

/// Makes lastval() return an ID.
pub fn show(id: i64) {
    let last = of_extension();
    // SAFETY: nothing is held that must be dropped. The sequence belongs to no role, so its privileges are not asked for.
    unsafe { sequence::native_next(last, false) };
    correct(id);
}

/// Makes lastval() return another number, if it returns an ID.
pub fn correct(id: i64) {
    let last = of_extension();
    // SAFETY: nothing is held that must be dropped.
    unsafe { sequence::native_set(last, id, None) };
}

fn of_extension() -> Oid {
    let now = sequence::changes();
    let (changes, found) = FOUND.get();
    if let Some(found) = found.filter(|_| changes == now) {
        return found;
    }
    let found = sequence::find(INTERNAL_SCHEMA, c"flake_last").ok_or_else(missing).or_raise();
    FOUND.set((now, Some(found)));
    found
}

fn missing() -> Error {
    Error::not_ready("sequence flake_internal.flake_last does not exist")
        .detail("Extension flake_sequences has created it, and lastval() could not return IDs without it.")
        .hint("Undo the change, or create the extension again.")
}
