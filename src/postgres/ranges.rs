//! PostgreSQL's ranges of timestamptz as spans of instants.

use std::ops::Bound;

use pgrx::datum::{Range, RangeBound, TimestampWithTimeZone};

use super::timestamptz::Timestamptz;

/// Returns the ends of a range as instants, or None if the range is empty. An infinite timestamptz leaves the range open on its own
/// side, and makes it empty on the other side.
pub fn instants(range: &Range<TimestampWithTimeZone>) -> Option<(Bound<i64>, Bound<i64>)> {
    let (lower, upper) = (bound(range.lower()?), bound(range.upper()?));
    let is = |bound, end| matches!(bound, Bound::Included(at) | Bound::Excluded(at) if at == end);
    if is(lower, Timestamptz::INFINITY) || is(upper, Timestamptz::NEGATIVE_INFINITY) {
        return None;
    }
    let is_infinite = |bound| is(bound, Timestamptz::INFINITY) || is(bound, Timestamptz::NEGATIVE_INFINITY);
    let finite = |bound: Bound<_>| if is_infinite(bound) { Bound::Unbounded } else { bound.map(Timestamptz::instant) };
    Some((finite(lower), finite(upper)))
}

fn bound(bound: &RangeBound<TimestampWithTimeZone>) -> Bound<Timestamptz> {
    match bound {
        RangeBound::Infinite => Bound::Unbounded,
        RangeBound::Inclusive(at) => Bound::Included((*at).into()),
        RangeBound::Exclusive(at) => Bound::Excluded((*at).into()),
    }
}
