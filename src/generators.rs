//! The view of this session's generators.

use flake_core::Numbers;
use pgrx::datum::{Interval, Range, RangeBound, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::generate::{SessionGenerator, each};
use crate::layouts::sql_instant;

#[pg_extern(sql = "")]
#[allow(clippy::type_complexity, reason = "the columns of a view")]
fn flake_generators() -> TableIterator<
    'static,
    (
        name!(layout, String),
        name!(workers, Range<i64>),
        name!(sequences, Range<i64>),
        name!(ids_per_tick, i64),
        name!(last_tick, Option<TimestampWithTimeZone>),
        name!(issued, i64),
        name!(overflow_waits, i64),
        name!(clock_steps, i64),
        name!(waited, Interval),
    ),
> {
    let row = |own: &SessionGenerator| {
        (
            own.layout.name().to_owned(),
            range(own.share.workers),
            range(own.share.sequences),
            own.share.size() as i64,
            own.generator.last_tick_start().map(sql_instant),
            own.generator.issued() as i64,
            own.overflow_waits as i64,
            own.clock_steps as i64,
            Interval::from_micros(own.waited.as_micros() as i64),
        )
    };
    TableIterator::new(each(row))
}

fn range(numbers: Numbers) -> Range<i64> {
    let end = numbers.first + numbers.count;
    Range::new(RangeBound::Inclusive(numbers.first as i64), RangeBound::Exclusive(end as i64))
}
