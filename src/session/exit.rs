//! The session's exit: its generators leave their progress to the slot's next owner.
#![allow(unsafe_code, reason = "registers a callback")]

use std::cell::Cell;

use flake_core::FinalProgress;
use pgrx::{pg_guard, pg_sys};

use super::generators::{IdSource, SessionGenerator};
use super::layout_source::LayoutSource;
use super::sno_source::SnoSource;
use crate::ledger;

/// Makes the session leave its progress when it exits.
pub fn leave_at_exit() {
    thread_local! {
        static IS_REGISTERED: Cell<bool> = const { Cell::new(false) };
    }
    #[pg_guard]
    unsafe extern "C-unwind" fn at_exit(_code: i32, _argument: pg_sys::Datum) {
        ledger::leave(all_progress().as_deref());
    }
    if !IS_REGISTERED.replace(true) {
        // SAFETY: the callback lives as long as the library, which PostgreSQL never unloads.
        unsafe { pg_sys::before_shmem_exit(Some(at_exit), pg_sys::Datum::from(0)) };
    }
}

/// Returns the progress of all generators; none if one of them is in the middle of making an ID.
fn all_progress() -> Option<Vec<FinalProgress>> {
    let mut all = progress_of::<LayoutSource>()?;
    all.extend(progress_of::<SnoSource>()?);
    Some(all)
}

fn progress_of<S: IdSource>() -> Option<Vec<FinalProgress>> {
    S::store().with(|generators| {
        let mut generators = generators.try_borrow_mut().ok()?;
        Some(generators.iter_mut().map(SessionGenerator::final_progress).collect())
    })
}
