//! The time of an ID, and the IDs of an instant.
#![allow(unsafe_code, reason = "the call site keeps the layout")]

use pgrx::pg_sys::Datum;

use crate::layouts::argument::with_layout;
use crate::postgres::call::Text;
use crate::postgres::entry_point::entry_point;
use crate::postgres::timestamptz::Timestamptz;

// Each `layout` is argument 1, and the functions cache nothing else.

entry_point!(flake_timestamp(id: i64, layout: Text<'_>), |call| {
    // SAFETY: see above.
    let at = unsafe { with_layout(call, 1, layout, |layout| Ok(layout.start_of(layout.tick_of(id as u64)?))) };
    Datum::from(Timestamptz::from_instant(at))
});

entry_point!(flake_min(at: Timestamptz, layout: Text<'_>), |call| {
    // SAFETY: see above.
    Datum::from(unsafe { with_layout(call, 1, layout, |layout| layout.min_at(at.instant())) })
});

entry_point!(flake_max(at: Timestamptz, layout: Text<'_>), |call| {
    // SAFETY: see above.
    Datum::from(unsafe { with_layout(call, 1, layout, |layout| layout.max_at(at.instant())) })
});
