//! The rows of the view flake_layouts.

use flake_core::{BUILTIN, FieldDefinition, Layout};
use pgrx::JsonB;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::layouts::custom;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::timestamptz::from_instant;

#[pg_extern(sql = "")]
#[allow(clippy::type_complexity, reason = "the columns of a view")]
fn flake_layouts() -> TableIterator<
    'static,
    (
        name!(name, String),
        name!(epoch, TimestampWithTimeZone),
        name!(tick, Interval),
        name!(bits, i32),
        name!(fields, JsonB),
        name!(sequence, &'static str),
        name!(ids_per_tick, i64),
        name!(ends_at, TimestampWithTimeZone),
        name!(sortable_until, Option<TimestampWithTimeZone>),
        name!(text_form, &'static str),
        name!(generates, bool),
        name!(source, String),
    ),
> {
    let custom: Vec<&Layout> = custom::names().iter().map(|name| custom::find(name).or_raise()).collect();
    TableIterator::new(BUILTIN.iter().chain(custom).map(|layout| {
        let fields: Vec<_> = layout.fields().iter().map(FieldDefinition::from).collect();
        let start_of = |tick| from_instant(layout.start_of(tick));
        (
            layout.name().to_owned(),
            from_instant(layout.epoch()),
            Interval::from_micros(layout.tick_length()),
            layout.width() as i32,
            JsonB(serde_json::json!(fields)),
            layout.rule().name(),
            layout.ids_per_tick() as i64,
            start_of(layout.last_tick()),
            layout.last_ordered_tick().map(start_of),
            layout.text().name(),
            layout.generates(),
            layout.source().to_owned(),
        )
    }))
}

c_symbol!(flake_layouts);
