//! The rows of the view flake_generators.

use flake_core::sno::NAME;
use flake_core::{Numbers, Share};
use pgrx::datum::{Interval, Range, RangeBound, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::postgres::entry_point::c_symbol;
use crate::postgres::interval;
use crate::postgres::timestamptz::from_instant;
use crate::session::delays::Delays;
use crate::session::stores::{LAYOUTS, SNOS, each};

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
    let row = |layout: &str, share: &Share, last_tick: Option<i64>, issued: u64, delays: &Delays, drifts: u64| {
        (
            layout.to_owned(),
            range(share.workers),
            range(share.sequences),
            share.size() as i64,
            share.steps as i64,
            share.ids_per_step as i64,
            last_tick.map(from_instant),
            issued as i64,
            delays.overflow_waits as i64,
            (delays.clock_steps + drifts) as i64,
            interval::from_micros(delays.waited.as_micros() as i64),
        )
    };
    let mut rows = each(&LAYOUTS, |own| {
        let last_tick = own.resumable.generator.last_tick_start();
        row(own.source().name(), own.share(), last_tick, own.resumable.issued(), &own.delays, 0)
    });
    rows.extend(each(&SNOS, |own| {
        let generator = &own.resumable.generator;
        // Most steps of the clock do not delay a sno, but they change its tick-tock bit.
        let drifts = generator.progress().drifts;
        row(&NAME, own.share(), generator.last_tick_start(), own.resumable.issued(), &own.delays, drifts)
    }));
    TableIterator::new(rows)
}

fn range(numbers: Numbers) -> Range<i64> {
    // Only 2^63 numbers end beyond bigint.
    let end = i64::try_from(numbers.first + numbers.count).map_or(RangeBound::Infinite, RangeBound::Exclusive);
    Range::new(RangeBound::Inclusive(numbers.first as i64), end)
}

c_symbol!(flake_generators);
