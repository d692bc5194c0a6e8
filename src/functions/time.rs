//! The time of an ID, and the IDs of an instant.
#![allow(unsafe_code, reason = "the call site keeps the layout")]

use flake_core::{Error, Layout};
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::layouts::argument::with_layout;
use crate::layouts::by_name;
use crate::postgres::call::Text;
use crate::postgres::entry_point::entry_point;
use crate::postgres::timestamptz::{Timestamptz, from_instant, to_instant};

entry_point!(flake_timestamp(id: i64, layout: Text<'_>) else flake_timestamp_or_error, |call| {
    // SAFETY: `layout` is argument 1, and the function caches nothing else.
    unsafe { with_layout(call, 1, layout, |layout| start_of(layout, id).ok().map(Timestamptz::from_instant)) }
});

entry_point!(flake_min(at: Timestamptz, layout: Text<'_>) else flake_min_or_error, |call| {
    // SAFETY: `layout` is argument 1, and the function caches nothing else.
    unsafe { with_layout(call, 1, layout, |layout| layout.min_at(at.instant()).ok()) }
});

entry_point!(flake_max(at: Timestamptz, layout: Text<'_>) else flake_max_or_error, |call| {
    // SAFETY: `layout` is argument 1, and the function caches nothing else.
    unsafe { with_layout(call, 1, layout, |layout| layout.max_at(at.instant()).ok()) }
});

/// Returns when an ID's tick began.
#[inline]
fn start_of(layout: &Layout, id: i64) -> Result<i64, Error> {
    Ok(layout.start_of(layout.tick_of(id as u64)?))
}

#[pg_extern(sql = "")]
fn flake_timestamp_or_error(id: i64, layout: &[u8]) -> TimestampWithTimeZone {
    from_instant(start_of(by_name(layout), id).or_raise())
}

#[pg_extern(sql = "")]
fn flake_min_or_error(at: TimestampWithTimeZone, layout: &[u8]) -> i64 {
    by_name(layout).min_at(to_instant(at)).or_raise() as i64
}

#[pg_extern(sql = "")]
fn flake_max_or_error(at: TimestampWithTimeZone, layout: &[u8]) -> i64 {
    by_name(layout).max_at(to_instant(at)).or_raise() as i64
}
