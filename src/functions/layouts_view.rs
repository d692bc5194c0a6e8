//! The rows of the view flake_layouts.

use flake_core::{BUILTIN, FieldDefinition, Layout};
use pgrx::AnyNumeric;
use pgrx::JsonB;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::error::warn;
use crate::layouts::{catalog, custom};
use crate::postgres::entry_point::c_symbol;
use crate::postgres::interval;
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
        name!(ids_per_tick, AnyNumeric),
        name!(ends_at, TimestampWithTimeZone),
        name!(sortable_until, Option<TimestampWithTimeZone>),
        name!(increasing, bool),
        name!(text_form, &'static str),
        name!(generates, bool),
        name!(source, String),
    ),
> {
    let custom = custom_layouts();
    let is_replaced = |layout: &&Layout| custom.iter().any(|custom| custom.name() == layout.name());
    let built_in: Vec<&Layout> = BUILTIN.iter().filter(|layout| !is_replaced(layout)).collect();
    TableIterator::new(built_in.into_iter().chain(custom).map(|layout| {
        let fields: Vec<_> = layout.fields().iter().map(FieldDefinition::from).collect();
        let start_of = |tick| from_instant(layout.start_of(tick));
        (
            layout.name().to_owned(),
            from_instant(layout.epoch()),
            interval::from_micros(layout.tick_length()),
            layout.width() as i32,
            JsonB(serde_json::json!(fields)),
            layout.rule().name(),
            AnyNumeric::from(layout.ids_per_tick()),
            start_of(layout.last_tick()),
            layout.last_ordered_tick().map(start_of),
            layout.increases(),
            layout.text().name(),
            layout.generates(),
            layout.source().to_owned(),
        )
    }))
}

/// Returns the custom layouts. Of one whose definition somebody has changed there is nothing to show but a warning.
fn custom_layouts() -> Vec<&'static Layout> {
    let find = |name: &String| {
        custom::find(name).unwrap_or_else(|error| {
            warn(error);
            None
        })
    };
    catalog::names().iter().filter_map(find).collect()
}

c_symbol!(flake_layouts);
