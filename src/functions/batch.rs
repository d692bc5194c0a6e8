//! flake_batch: makes a few hundred IDs at a time, so that an ID costs little more than its row.
//!
//! It returns one row per call. In FROM, PostgreSQL collects the rows itself; elsewhere nobody needs to.
#![allow(unsafe_code, reason = "in pgrx's form of a set, a row costs more than the ID in it")]

use std::ptr;

use pgrx::{check_for_interrupts, pg_sys};

use crate::error::{Error, OrRaise};
use crate::postgres::call::{Call, Text};
use crate::postgres::entry_point::entry_point;
use crate::postgres::guard::guarded;
use crate::postgres::random::random;
use crate::session::layout_source::LayoutSource;
use crate::session::next_id;
use crate::session::stores::{LAYOUTS, with_generator};

/// How many IDs are made at a time: about the rows of a few microseconds.
const CHUNK: usize = 256;

/// The state of a batch. It is in memory of the query, which frees it without dropping it.
struct Batch {
    /// The layout that had this name when the batch began. Another layout may get the name while a cursor is open.
    source: LayoutSource,
    /// How many IDs are still to be made.
    to_make: usize,
    /// The IDs made last. Those from `next` to before `made` have not been returned yet.
    ids: [u64; CHUNK],
    next: usize,
    made: usize,
}

impl Batch {
    /// Makes at least one more ID, unless the batch is complete.
    fn refill(&mut self) {
        check_for_interrupts!();
        let room = self.to_make.min(CHUNK);
        self.next = 0;
        self.made = 0;
        if room > 0 {
            self.made = with_generator(&LAYOUTS, self.source, |own| own.fill(&mut self.ids[..room], random));
            if self.made == 0 {
                self.ids[0] = next_id(&LAYOUTS, self.source, random).or_raise();
                self.made = 1;
            }
        }
        self.to_make -= self.made;
    }
}

entry_point!(flake_batch(layout: Text<'_>, count: i32), |call| {
    let raw = call.raw();
    // SAFETY: PostgreSQL calls a function that returns a set with a ReturnSetInfo and with a call site, which keeps the state of
    // the batch after the first call. Calls that can raise an error are guarded.
    unsafe {
        if (*(*raw).flinfo).fn_extra.is_null() {
            guarded(|| begin(call, layout, count));
        }
        let state = (*(*raw).flinfo).fn_extra.cast::<pg_sys::FuncCallContext>();
        let batch = &mut *(*state).user_fctx.cast::<Batch>();
        if batch.next == batch.made {
            guarded(|| batch.refill());
        }
        let set = (*raw).resultinfo.cast::<pg_sys::ReturnSetInfo>();
        if batch.next == batch.made {
            guarded(|| pg_sys::end_MultiFuncCall(raw, state));
            (*set).isDone = pg_sys::ExprDoneCond::ExprEndResult;
            (*raw).isnull = true;
            return pg_sys::Datum::null();
        }
        (*set).isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
        let id = batch.ids[batch.next];
        batch.next += 1;
        pg_sys::Datum::from(id)
    }
});

/// Checks the arguments and creates the state of the batch.
///
/// # Safety
/// The call must be a call of flake_batch.
unsafe fn begin(call: Call, layout: Text<'_>, count: i32) {
    // SAFETY: as the caller promises.
    unsafe {
        // This raises an error if the caller expects no set, so it comes first.
        let state = pg_sys::init_MultiFuncCall(call.raw());
        let source = LayoutSource::by_name(layout.bytes());
        let Ok(to_make) = usize::try_from(count) else {
            let detail = format!("The count is {count}; the valid range is 0 to {}.", i32::MAX);
            Error::invalid("count must not be negative").detail(detail).raise()
        };
        let batch = pg_sys::MemoryContextAlloc((*state).multi_call_memory_ctx, size_of::<Batch>()).cast::<Batch>();
        ptr::write(batch, Batch { source, to_make, ids: [0; CHUNK], next: 0, made: 0 });
        (*state).user_fctx = batch.cast();
    }
}
