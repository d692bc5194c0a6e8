//! The rows of the view flake_generators.

use flake_core::{IdSource, Numbers};
use pgrx::datum::{Interval, Range, RangeBound, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::postgres::entry_point::c_symbol;
use crate::postgres::interval;
use crate::postgres::timestamptz::from_instant;
use crate::session::generators::SessionGenerator;
use crate::session::stores::{LAYOUTS, SNOS, each};

type Row = (String, Range<i64>, Range<i64>, i64, i64, i64, Option<TimestampWithTimeZone>, i64, i64, i64, Interval);

#[pg_extern(sql = "")]
#[allow(clippy::type_complexity, reason = "the columns of a view")]
fn flake_generators() -> TableIterator<
    'static,
    (
        name!(layout, String),
        name!(workers, Range<i64>),
        name!(sequences, Range<i64>),
        name!(ids_per_tick, i64),
        name!(steps, i64),
        name!(ids_per_step, i64),
        name!(last_tick, Option<TimestampWithTimeZone>),
        name!(issued, i64),
        name!(overflow_waits, i64),
        name!(clock_steps, i64),
        name!(waited, Interval),
    ),
> {
    let mut rows = each(&LAYOUTS, row);
    rows.extend(each(&SNOS, row));
    TableIterator::new(rows)
}

fn row<S: IdSource>(own: &SessionGenerator<S>) -> Row {
    let (generator, lanes) = (&own.resumable.generator, own.lanes());
    (
        own.source().name().into_owned(),
        range(lanes.workers),
        range(lanes.sequences),
        lanes.ids_per_session(own.source().ticks().length) as i64,
        lanes.steps as i64,
        lanes.ids_per_step as i64,
        generator.last_tick_start().map(from_instant),
        own.resumable.issued() as i64,
        own.delays.overflow_waits as i64,
        // Most steps of the clock do not delay snos, but they toggle the tick-tock bit.
        (own.delays.clock_steps + generator.progress().drifts) as i64,
        interval::from_micros(own.delays.waited.as_micros() as i64),
    )
}

fn range(numbers: Numbers) -> Range<i64> {
    // Only a range of 2^63 numbers ends beyond bigint.
    let end = i64::try_from(numbers.first + numbers.count).map_or(RangeBound::Infinite, RangeBound::Exclusive);
    Range::new(RangeBound::Inclusive(numbers.first as i64), end)
}

c_symbol!(flake_generators);
