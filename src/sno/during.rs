//! The snos of a span of time.
#![allow(unsafe_code, reason = "answers the planner")]

use flake_core::Sno;
use pgrx::datum::Range;
use pgrx::prelude::*;

use super::datum::SnoDatum;
use crate::postgres::entry_point::{c_symbol, entry_point};
use crate::postgres::range_condition;
use crate::postgres::ranges;

#[pg_extern(sql = "")]
fn sno_plan_first(span: Range<TimestampWithTimeZone>) -> SnoDatum {
    SnoDatum(snos_during(&span).0)
}

#[pg_extern(sql = "")]
fn sno_plan_last(span: Range<TimestampWithTimeZone>) -> SnoDatum {
    SnoDatum(snos_during(&span).1)
}

/// Usually the planner has replaced the call by a range of snos.
#[pg_extern(sql = "")]
fn sno_during(sno: SnoDatum, span: Range<TimestampWithTimeZone>) -> bool {
    let (first, last) = snos_during(&span);
    (first..=last).contains(&sno.0)
}

entry_point!(sno_during_support(request: *mut pg_sys::Node), |call| {
    // SAFETY: the request is for sno_during(key, span), and the functions of the ends are declared with (span).
    unsafe { range_condition::answer(request, |_, _| true) }
});

/// Returns the smallest and the largest sno of a span, or two snos with none between them.
fn snos_during(span: &Range<TimestampWithTimeZone>) -> (Sno, Sno) {
    let found = ranges::instants(span).and_then(|(from, to)| Sno::during(from, to));
    found.unwrap_or((Sno::from_bytes([u8::MAX; 10]), Sno::ZERO))
}

c_symbol!(sno_plan_first, sno_plan_last, sno_during);
