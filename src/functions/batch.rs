//! Many IDs by one call: made some hundreds at a time, so that an ID costs little more than the row it is in.
//!
//! The rows are handed out one by one. In FROM, PostgreSQL collects them by itself; elsewhere nothing is collected.
#![allow(unsafe_code, reason = "pgrx's form of a set costs more for each row than the ID in it")]

use std::ptr;

use flake_core::{Error, Layout};
use pgrx::{check_for_interrupts, pg_sys};

use crate::postgres::call::{Call, entry_point};
use crate::session::delays::wait_for_id;
use crate::error::{OrRaise, raise};
use crate::session::generators::{Named, SessionGenerator, own};
use crate::layouts::by_name;

/// IDs that are made at a time: some microseconds' worth of rows.
const AT_A_TIME: usize = 256;

/// A batch that is being handed out. It lies in memory of the query, which frees it without asking.
struct Batch {
    layout: &'static Layout,
    /// IDs that are yet to be made.
    to_make: usize,
    ids: [u64; AT_A_TIME],
    /// Of these the next to be handed out, and where they end.
    next: usize,
    made: usize,
}

impl Batch {
    /// Makes the next IDs, at least one; none when the batch is complete.
    fn refill(&mut self) {
        check_for_interrupts!();
        let name = self.layout.name().as_bytes();
        let room = self.to_make.min(AT_A_TIME);
        self.next = 0;
        self.made = if room == 0 { 0 } else { own(name, |own: &mut SessionGenerator| own.fill(&mut self.ids[..room])) };
        if room > 0 && self.made == 0 {
            self.ids[0] = wait_for_id(&Named(name)).or_raise();
            self.made = 1;
        }
        self.to_make -= self.made;
    }
}

entry_point!(pg_finfo_flake_batch, flake_batch, |call| {
    let call = call.raw();
    // SAFETY: PostgreSQL calls a function that returns a set with a place of the query, where the state of the batch is
    // from the first call on, and with a ReturnSetInfo; what can raise an error is guarded.
    unsafe {
        if (*(*call).flinfo).fn_extra.is_null() {
            pg_sys::panic::pgrx_extern_c_guard(|| begin(call));
        }
        let state = (*(*call).flinfo).fn_extra.cast::<pg_sys::FuncCallContext>();
        let batch = &mut *(*state).user_fctx.cast::<Batch>();
        if batch.next == batch.made {
            pg_sys::panic::pgrx_extern_c_guard(|| batch.refill());
        }
        let set = (*call).resultinfo.cast::<pg_sys::ReturnSetInfo>();
        if batch.next == batch.made {
            pg_sys::panic::pgrx_extern_c_guard(|| pg_sys::end_MultiFuncCall(call, state));
            (*set).isDone = pg_sys::ExprDoneCond::ExprEndResult;
            (*call).isnull = true;
            return pg_sys::Datum::null();
        }
        (*set).isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
        let id = batch.ids[batch.next];
        batch.next += 1;
        pg_sys::Datum::from(id)
    }
});

/// Checks the arguments and makes room for the state of the batch.
unsafe fn begin(call: pg_sys::FunctionCallInfo) {
    // SAFETY: as the caller; the arguments are those of a STRICT function.
    unsafe {
        // Before anything else, as it says when no set is expected here.
        let state = pg_sys::init_MultiFuncCall(call);
        let arguments = Call::new(call);
        let layout = by_name(arguments.whole_text(0));
        let count = arguments.integer(1);
        let Ok(to_make) = usize::try_from(count) else { raise(Error::BadCount { count: count.into() }) };
        let batch = pg_sys::MemoryContextAlloc((*state).multi_call_memory_ctx, size_of::<Batch>()).cast::<Batch>();
        ptr::write(batch, Batch { layout, to_make, ids: [0; AT_A_TIME], next: 0, made: 0 });
        (*state).user_fctx = batch.cast();
    }
}
