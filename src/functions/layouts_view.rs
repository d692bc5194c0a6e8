//! The rows of the view flake_layouts.

use std::collections::BTreeSet;

use flake_core::{BUILTIN, FieldDefinition, Lanes, Layout, built_in};
use pgrx::AnyNumeric;
use pgrx::JsonB;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::prelude::*;
use serde_json::{Value, json};

use crate::error::Error;
use crate::layouts::custom;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::interval;
use crate::postgres::memory::push;
use crate::postgres::timestamptz::from_instant;
use crate::{clock, ledger};

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
        name!(ids_per_tick, AnyNumeric),
        name!(ends_at, TimestampWithTimeZone),
        name!(sortable_until, Option<TimestampWithTimeZone>),
        name!(increasing, bool),
        name!(text_form, String),
        name!(generates, bool),
        name!(source, String),
        name!(ids_per_second, Option<AnyNumeric>),
    ),
> {
    // A layout whose definition was changed by ALTER SERVER is left out, with a WARNING.
    let (mut taken, mut custom) = (BTreeSet::new(), Vec::new());
    for (name, layout) in custom::all() {
        taken.extend(built_in(&name).map(Layout::name));
        layout.map_err(Error::warn).into_iter().for_each(|layout| push(&mut custom, layout));
    }
    let built_in = BUILTIN.iter().filter(move |layout| !taken.contains(layout.name()));
    TableIterator::new(built_in.chain(custom).map(|layout| {
        let fields: Vec<_> = layout.fields().iter().map(FieldDefinition::from).collect();
        let start_of = |tick| from_instant(layout.start_of(tick));
        (
            layout.name().to_owned(),
            from_instant(layout.epoch()),
            interval::from_micros(layout.tick_length()),
            layout.width() as i32,
            JsonB(json!(fields)),
            AnyNumeric::from(layout.ids_per_tick()),
            start_of(layout.last_tick()),
            layout.last_ordered_tick().map(start_of),
            layout.increases(),
            name(&json!(layout.text)),
            layout.generates,
            layout.source.to_string(),
            ids_per_second(layout).map(AnyNumeric::from),
        )
    }))
}

/// Returns how many IDs of a layout the sessions of this server can make in a second, or None if they make none.
fn ids_per_second(layout: &Layout) -> Option<u128> {
    let lanes = Lanes::new(layout, ledger::part_to_read().ok()?).ok()?;
    let is_its_time = layout.ticks().tick_to_generate_in(clock::now(), layout.name()).is_ok();
    (layout.generates && is_its_time).then(|| lanes.ids_per_second(layout.tick_length()))
}

/// Returns the name of a value in definitions.
fn name(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

c_symbol!(flake_layouts);
