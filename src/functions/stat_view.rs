//! The row of the view flake_stat.

use std::sync::atomic::{AtomicU64, Ordering};

use flake_core::instant::MIN_INSTANT;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::error::{OrRaise, monitor_only};
use crate::ledger;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::interval;
use crate::postgres::timestamptz::from_instant;

#[pg_extern(sql = "")]
#[allow(clippy::type_complexity, reason = "the columns of a view")]
fn flake_stat() -> TableIterator<
    'static,
    (
        name!(ledger, &'static str),
        name!(node_id, Option<i32>),
        name!(node_count, Option<i32>),
        name!(sessions, Option<i32>),
        name!(issued, Option<i64>),
        name!(overflow_waits, Option<i64>),
        name!(clock_changes, Option<i64>),
        name!(longest_wait, Option<Interval>),
        name!(mark, Option<TimestampWithTimeZone>),
        name!(floor, Option<TimestampWithTimeZone>),
        name!(lead, Option<Interval>),
        name!(generation, Option<i32>),
    ),
> {
    monitor_only("flake_stat").or_raise();
    let Some(now) = ledger::status() else {
        let nothing = ("none", None, None, None, None, None, None, None, None, None, None, None);
        return TableIterator::once(nothing);
    };
    let count = |counter: &AtomicU64| Some(counter.load(Ordering::Relaxed) as i64);
    // After an acceptance, no time is reserved before the next ID.
    let known = |instant| (instant > MIN_INSTANT).then(|| from_instant(instant));
    TableIterator::once((
        if now.ledger.is_some() { "open" } else { "unused" },
        now.node.map(|node| node.id() as i32),
        now.node.map(|node| node.count() as i32),
        Some(now.sessions as i32),
        count(&now.counters.issued),
        count(&now.counters.overflow_waits),
        count(&now.counters.clock_changes),
        Some(interval::from_micros(now.counters.longest_wait.load(Ordering::Relaxed) as i64)),
        now.ledger.and_then(|ledger| known(ledger.reserved.end())),
        now.ledger.and_then(|ledger| known(ledger.floor)),
        now.ledger.map(|_| interval::from_micros(now.lead)),
        now.ledger.map(|ledger| ledger.reserved.generation() as i32),
    ))
}

c_symbol!(flake_stat);
