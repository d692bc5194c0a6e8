//! The row of the view flake_stats.

use std::sync::atomic::{AtomicU64, Ordering};

use pgrx::datum::{Interval, Range, RangeBound, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::error::{OrRaise, monitor_only};
use crate::postgres::entry_point::c_symbol;
use crate::postgres::interval;
use crate::postgres::timestamptz::from_instant;
use crate::{clock, ledger};

#[pg_extern(sql = "")]
#[allow(clippy::type_complexity, reason = "the columns of a view")]
fn flake_stats() -> TableIterator<
    'static,
    (
        name!(ledger, &'static str),
        name!(node_id, Option<i32>),
        name!(node_count, Option<i32>),
        name!(sessions, Option<i32>),
        name!(issued, Option<i64>),
        name!(overflow_waits, Option<i64>),
        name!(clock_waits, Option<i64>),
        name!(clock_changes, Option<i64>),
        name!(longest_wait, Option<Interval>),
        name!(mark, Option<TimestampWithTimeZone>),
        name!(floor, Option<TimestampWithTimeZone>),
        name!(skipped, Option<Vec<Range<TimestampWithTimeZone>>>),
    ),
> {
    monitor_only("flake_stats").or_raise();
    let Some(now) = ledger::status() else {
        let nothing = ("none", None, None, None, None, None, None, None, None, None, None, None);
        return TableIterator::once(nothing);
    };
    let count = |counter: &AtomicU64| Some(counter.load(Ordering::Relaxed) as i64);
    let skipped = now.ledger.map(|ledger| {
        let range = |(from, until)| {
            Range::new(RangeBound::Inclusive(from_instant(from)), RangeBound::Exclusive(from_instant(until)))
        };
        ledger.time.used_ahead(clock::now()).into_iter().map(range).collect()
    });
    TableIterator::once((
        if now.ledger.is_some() { "open" } else { "unused" },
        now.node.map(|node| node.id() as i32),
        now.node.map(|node| node.count() as i32),
        Some(now.sessions as i32),
        count(&now.counters.issued),
        count(&now.counters.overflow_waits),
        count(&now.counters.clock_waits),
        count(&now.counters.clock_changes),
        Some(interval::from_micros(now.counters.longest_wait.load(Ordering::Relaxed) as i64)),
        now.ledger.map(|ledger| from_instant(ledger.time.until())),
        now.ledger.map(|ledger| from_instant(ledger.time.floor)),
        skipped,
    ))
}

c_symbol!(flake_stats);
