//! The view of this session's generators.

use flake_core::{Numbers, Share};
use pgrx::datum::{Interval, Range, RangeBound, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::session::delays::Delays;
use crate::layouts::sql_instant;
use crate::session::generators as generate;
use crate::sno;

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
    let row = |layout: &str, share: &Share, last_tick: Option<i64>, issued: u64, delays: &Delays| {
        (
            layout.to_owned(),
            range(share.workers),
            range(share.sequences),
            share.size() as i64,
            last_tick.map(sql_instant),
            issued as i64,
            delays.overflow_waits as i64,
            delays.clock_steps as i64,
            Interval::from_micros(delays.waited.as_micros() as i64),
        )
    };
    let mut rows = generate::each(|own| {
        let last_tick = own.session.generator.last_tick_start();
        row(own.layout.name(), &own.share, last_tick, own.session.issued(), &own.delays)
    });
    rows.extend(sno::each(|own| {
        let generator = &own.session.generator;
        let mut row = row("sno", &own.share, generator.last_unit_start(), own.session.issued(), &own.delays);
        // Most steps of the clock do not delay a sno; the tick-tock bit counts them.
        row.7 += generator.trace().drifts as i64;
        row
    }));
    TableIterator::new(rows)
}

fn range(numbers: Numbers) -> Range<i64> {
    let end = numbers.first + numbers.count;
    Range::new(RangeBound::Inclusive(numbers.first as i64), RangeBound::Exclusive(end as i64))
}
