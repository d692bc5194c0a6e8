//! Layouts by name, and the view of them.

use flake_core::{BUILTIN, Error, FieldDefinition, Layout, find};
use pgrx::JsonB;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::clock;
use crate::error::{OrRaise, raise};

/// The layout that a `text` argument names. Its bytes are taken as they are: names are ASCII, so the encoding of the
/// database does not matter.
pub fn by_name(name: &[u8]) -> &'static Layout {
    match std::str::from_utf8(name) {
        Ok(name) if name.is_ascii() => find(name).or_raise(),
        _ => raise(Error::UnknownLayout { name: name.escape_ascii().to_string(), nearest: None }),
    }
}

/// An instant as a value of SQL.
pub fn sql_instant(instant: i64) -> TimestampWithTimeZone {
    TimestampWithTimeZone::try_from(clock::timestamptz(instant)).unwrap_or(TimestampWithTimeZone::positive_infinity())
}

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
        name!(source, String),
    ),
> {
    TableIterator::new(BUILTIN.iter().map(|layout| {
        let fields: Vec<_> = layout.fields().iter().map(FieldDefinition::from).collect();
        let start_of = |tick| sql_instant(layout.start_of(tick));
        (
            layout.name().to_owned(),
            sql_instant(layout.epoch()),
            Interval::from_micros(layout.tick()),
            layout.width() as i32,
            JsonB(serde_json::json!(fields)),
            layout.rule().name(),
            layout.ids_per_tick() as i64,
            start_of(layout.last_tick()),
            layout.last_ordered_tick().map(start_of),
            layout.source().to_owned(),
        )
    }))
}
