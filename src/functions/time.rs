//! The time inside an ID, and the IDs inside a time.
//!
//! A `timestamptz` is taken and given as the 64-bit number it is, so that nothing is rounded.

use flake_core::{Bound, Error, Layout};
use pgrx::datum::{Range, RangeBound};
use pgrx::prelude::*;

use crate::postgres::call::entry_point;
use crate::clock::{instant, timestamptz};
use crate::error::OrRaise;
use crate::layouts::by_name;

entry_point!(pg_finfo_flake_timestamp, flake_timestamp, |call| {
    let at = call.layout(1).and_then(|layout| timestamp_in(layout, call.bigint(0)).ok());
    at.map_or_else(|| call.otherwise_keeping_layout(1, flake_timestamp_or_error_wrapper), pg_sys::Datum::from)
});

entry_point!(pg_finfo_flake_min, flake_min, |call| {
    let id = call.layout(1).and_then(|layout| layout.min_at(instant(call.bigint(0))).ok());
    id.map_or_else(|| call.otherwise_keeping_layout(1, flake_min_or_error_wrapper), pg_sys::Datum::from)
});

entry_point!(pg_finfo_flake_max, flake_max, |call| {
    let id = call.layout(1).and_then(|layout| layout.max_at(instant(call.bigint(0))).ok());
    id.map_or_else(|| call.otherwise_keeping_layout(1, flake_max_or_error_wrapper), pg_sys::Datum::from)
});

#[inline]
fn timestamp_in(layout: &Layout, id: i64) -> Result<i64, Error> {
    Ok(timestamptz(layout.start_of(layout.tick_of(id as u64)?)))
}

#[pg_extern(sql = "")]
fn flake_timestamp_or_error(id: i64, layout: &[u8]) -> i64 {
    timestamp_in(by_name(layout), id).or_raise()
}

#[pg_extern(sql = "")]
fn flake_min_or_error(at: i64, layout: &[u8]) -> i64 {
    by_name(layout).min_at(instant(at)).or_raise() as i64
}

#[pg_extern(sql = "")]
fn flake_max_or_error(at: i64, layout: &[u8]) -> i64 {
    by_name(layout).max_at(instant(at)).or_raise() as i64
}

/// No ID: a first one above every bigint but one, and a last one below.
const NONE: (i64, i64) = (i64::MAX, i64::MIN);

#[pg_extern(sql = "")]
fn flake_first(span: Range<TimestampWithTimeZone>, layout: &[u8]) -> i64 {
    ids_during(&span, layout).0
}

#[pg_extern(sql = "")]
fn flake_last(span: Range<TimestampWithTimeZone>, layout: &[u8]) -> i64 {
    ids_during(&span, layout).1
}

fn ids_during(span: &Range<TimestampWithTimeZone>, layout: &[u8]) -> (i64, i64) {
    let layout = by_name(layout);
    let Some((from, to, to_included)) = ends(span) else {
        // There is nothing in it; but a layout that has no order is an error all the same.
        layout.ids_during(None, None, false).or_raise();
        return NONE;
    };
    layout.ids_during(from, to, to_included).or_raise().unwrap_or(NONE)
}

/// Where a span begins and ends, and whether its end belongs to it; none when nothing is in it. An infinite timestamptz
/// is as good as an open end at its own side, and leaves nothing at the other.
pub fn ends(span: &Range<TimestampWithTimeZone>) -> Option<(Bound, Bound, bool)> {
    let (lower, upper) = (span.lower()?, span.upper()?);
    let (from, to) = (value(lower), value(upper));
    if from == Some(i64::MAX) || to == Some(i64::MIN) {
        return None;
    }
    let from = from.filter(|&at| at != i64::MIN).map(instant);
    let to = to.filter(|&at| at != i64::MAX).map(instant);
    Some((from, to, matches!(upper, RangeBound::Inclusive(_))))
}

fn value(bound: &RangeBound<TimestampWithTimeZone>) -> Option<i64> {
    match bound {
        RangeBound::Infinite => None,
        RangeBound::Inclusive(at) | RangeBound::Exclusive(at) => Some((*at).into_inner()),
    }
}
