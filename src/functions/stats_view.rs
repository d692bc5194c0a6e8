//! The view over the whole server, and the function for a clock that was wrong.

use std::sync::atomic::Ordering;

use pgrx::datum::{Interval, Range, RangeBound, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::layouts::sql_instant;
use crate::ledger;

#[pg_extern(sql = "")]
#[allow(clippy::type_complexity, reason = "the columns of a view")]
fn flake_stats() -> TableIterator<
    'static,
    (
        name!(ledger, &'static str),
        name!(node_id, Option<i64>),
        name!(node_count, Option<i64>),
        name!(sessions, Option<i32>),
        name!(issued, Option<i64>),
        name!(overflow_waits, Option<i64>),
        name!(clock_waits, Option<i64>),
        name!(clock_steps, Option<i64>),
        name!(longest_wait, Option<Interval>),
        name!(mark, Option<TimestampWithTimeZone>),
        name!(floor, Option<TimestampWithTimeZone>),
        name!(skipped, Option<Vec<Range<TimestampWithTimeZone>>>),
    ),
> {
    let Some(control) = ledger::control() else {
        let nothing = ("none", None, None, None, None, None, None, None, None, None, None, None);
        return TableIterator::once(nothing);
    };
    let view = ledger::view(control);
    let node = (view.node.1 > 0).then_some(view.node);
    let counters = &control.counters;
    let count = |counter: &std::sync::atomic::AtomicU64| Some(counter.load(Ordering::Relaxed) as i64);
    let skipped = view.ledger.map(|ledger| {
        let above = &ledger.timeline().stretches()[ledger.timeline().open_number() + 1..];
        let range = |from, until| {
            Range::new(RangeBound::Inclusive(sql_instant(from)), RangeBound::Exclusive(sql_instant(until)))
        };
        above.iter().map(|stretch| range(stretch.from, stretch.until)).collect()
    });
    TableIterator::once((
        if view.ledger.is_some() { "open" } else { "unused" },
        node.map(|(id, _)| id.into()),
        node.map(|(_, count)| count.into()),
        Some(view.sessions as i32),
        count(&counters.issued),
        count(&counters.overflow_waits),
        count(&counters.clock_waits),
        count(&counters.clock_steps),
        Some(Interval::from_micros(counters.longest_wait.load(Ordering::Relaxed) as i64)),
        view.ledger.map(|ledger| sql_instant(ledger.mark())),
        view.ledger.map(|ledger| sql_instant(ledger.low())),
        skipped,
    ))
}

#[pg_extern(sql = "")]
fn flake_accept_clock() -> TimestampWithTimeZone {
    sql_instant(ledger::accept().or_raise())
}
