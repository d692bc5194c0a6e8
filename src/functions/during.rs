//! The IDs of a span of time.
#![allow(unsafe_code, reason = "answers the planner")]

use std::ops::Bound::Unbounded;

use pgrx::datum::Range;
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::layouts::{by_name, known};
use crate::postgres::call::Text;
use crate::postgres::entry_point::{c_symbol, entry_point};
use crate::postgres::range_condition;
use crate::postgres::ranges;

/// There is no ID between these.
const NO_IDS: (i64, i64) = (i64::MAX, i64::MIN);

#[pg_extern(sql = "")]
fn flake_plan_first(span: Range<TimestampWithTimeZone>, layout: &[u8]) -> i64 {
    ids_during(&span, layout).0
}

#[pg_extern(sql = "")]
fn flake_plan_last(span: Range<TimestampWithTimeZone>, layout: &[u8]) -> i64 {
    ids_during(&span, layout).1
}

/// Usually the planner has replaced the call by a range of IDs.
#[pg_extern(sql = "")]
fn flake_during(id: i64, span: Range<TimestampWithTimeZone>, layout: &[u8]) -> bool {
    let (first, last) = ids_during(&span, layout);
    (first..=last).contains(&id)
}

entry_point!(flake_during_support(request: *mut pg_sys::Node), |call| {
    // SAFETY: the request is for flake_during(key, span, layout), and the functions of the ends are declared with (span, layout).
    unsafe { range_condition::answer(request, has_range) }
});

/// Returns whether a layout has a range of IDs for a span that may be known.
fn has_range(layout: Text<'_>, span: Option<pg_sys::Datum>) -> bool {
    let Some(layout) = known(layout.bytes()) else { return false };
    // If its IDs turn negative, this depends on the span.
    if layout.last_ordered_tick() == Some(layout.last_tick()) {
        return true;
    }
    // SAFETY: flake_during is declared with a tstzrange.
    let span = span.and_then(|span| unsafe { Range::<TimestampWithTimeZone>::from_datum(span, false) });
    let (from, to) = span.and_then(|span| ranges::instants(&span)).unwrap_or((Unbounded, Unbounded));
    layout.ids_during(from, to).is_ok()
}

fn ids_during(span: &Range<TimestampWithTimeZone>, layout: &[u8]) -> (i64, i64) {
    let layout = by_name(layout);
    let Some((from, to)) = ranges::instants(span) else {
        // A layout that is not ordered by time is an error even for an empty span.
        layout.ids_during(Unbounded, Unbounded).or_raise();
        return NO_IDS;
    };
    layout.ids_during(from, to).or_raise().unwrap_or(NO_IDS)
}

c_symbol!(flake_plan_first, flake_plan_last, flake_during);
