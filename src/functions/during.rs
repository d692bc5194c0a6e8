//! The IDs of a span of time.
#![allow(unsafe_code, reason = "answers the planner")]

use pgrx::datum::Range;
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::layouts::{by_name, known};
use crate::postgres::call::Text;
use crate::postgres::entry_point::{c_symbol, entry_point};
use crate::postgres::range_condition::{self, Ends};
use crate::postgres::ranges;

/// There is no ID between these.
const NO_IDS: (i64, i64) = (i64::MAX, i64::MIN);

#[pg_extern(sql = "")]
fn flake_first(span: Range<TimestampWithTimeZone>, layout: &[u8]) -> i64 {
    ids_during(&span, layout).0
}

#[pg_extern(sql = "")]
fn flake_last(span: Range<TimestampWithTimeZone>, layout: &[u8]) -> i64 {
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
    unsafe { range_condition::answer(request, &Ends { first: c"flake_first", last: c"flake_last", accept: is_ordered }) }
});

/// Returns whether a layout has ranges of IDs.
fn is_ordered(layout: Text<'_>) -> bool {
    known(layout.bytes()).is_some_and(|layout| layout.last_ordered_tick().is_some())
}

fn ids_during(span: &Range<TimestampWithTimeZone>, layout: &[u8]) -> (i64, i64) {
    use std::ops::Bound::Unbounded;
    let layout = by_name(layout);
    let Some((from, to)) = ranges::instants(span) else {
        // A layout that is not ordered by time is an error even for an empty span.
        layout.ids_during(Unbounded, Unbounded).or_raise();
        return NO_IDS;
    };
    layout.ids_during(from, to).or_raise().unwrap_or(NO_IDS)
}

c_symbol!(flake_first, flake_last, flake_during);
