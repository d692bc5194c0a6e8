//! The session's exit: its generators leave their progress to the slot's next owner.
#![allow(unsafe_code, reason = "registers a callback")]

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ptr::fn_addr_eq;

use flake_core::FinalProgress;
use pgrx::{pg_guard, pg_sys};

use crate::ledger;

/// Returns the progress of the generators of one store; none if one of them is in the middle of making an ID.
pub type Collect = fn() -> Option<Vec<FinalProgress>>;

thread_local! {
    /// An entry for each store that has been used. It is never dropped, as the stores are not.
    static STORES: ManuallyDrop<RefCell<Vec<Collect>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Makes the session leave what `collect` returns when it exits.
pub fn leave_at_exit(collect: Collect) {
    #[pg_guard]
    unsafe extern "C-unwind" fn at_exit(_code: i32, _argument: pg_sys::Datum) {
        let progress: Option<Vec<_>> = STORES.with(|stores| stores.borrow().iter().map(|collect| collect()).collect());
        ledger::leave(progress.map(|stores| stores.concat()).as_deref());
    }
    let is_first = STORES.with(|stores| {
        let mut stores = stores.borrow_mut();
        let is_first = stores.is_empty();
        if !stores.iter().any(|&known| fn_addr_eq(known, collect)) {
            stores.push(collect);
        }
        is_first
    });
    if is_first {
        // SAFETY: the callback lives as long as the library, which PostgreSQL never unloads.
        unsafe { pg_sys::before_shmem_exit(Some(at_exit), pg_sys::Datum::from(0)) };
    }
}
