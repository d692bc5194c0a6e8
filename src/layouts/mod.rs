//! Layouts by name, and the view of them.

pub mod custom;

use std::cell::Cell;

use flake_core::{BUILTIN, FieldDefinition, Layout, built_in};
use pgrx::JsonB;
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::clock;

thread_local! {
    /// The layout of the last call, and since how many changes: a query asks for the same one row after row.
    static LAST: Cell<Option<(&'static Layout, u64)>> = const { Cell::new(None) };
}

/// The layout that a `text` argument names. Its bytes are taken as they are: names are ASCII, so the encoding of the
/// database does not matter.
#[inline]
pub fn by_name(name: &[u8]) -> &'static Layout {
    used_last(name).unwrap_or_else(|| look_up(name))
}

/// The layout of this name if it is the one of the last call.
#[inline]
pub fn used_last(name: &[u8]) -> Option<&'static Layout> {
    let (layout, since) = LAST.get()?;
    (is_same(layout.name().as_bytes(), name) && since == custom::changes()).then_some(layout)
}

/// Whether two names are the same: those of usual lengths by a few comparisons of words.
#[inline]
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    fn ends<const N: usize>(name: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
        Some((name.first_chunk()?, name.last_chunk()?))
    }
    one.len() == other.len()
        && match one.len() {
            4..=8 => ends::<4>(one) == ends(other),
            9..=16 => ends::<8>(one) == ends(other),
            _ => one == other,
        }
}

#[cold]
fn look_up(name: &[u8]) -> &'static Layout {
    let ascii = custom::ascii(name);
    // Counted before: a change that is heard of meanwhile is for the next call.
    let changes = custom::changes();
    let layout = built_in(&ascii).unwrap_or_else(|| custom::find(&ascii).or_raise());
    LAST.set(Some((layout, changes)));
    layout
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
        name!(text_form, &'static str),
        name!(generates, bool),
        name!(source, String),
    ),
> {
    let custom: Vec<&Layout> = custom::names().iter().map(|name| custom::find(name).or_raise()).collect();
    TableIterator::new(BUILTIN.iter().chain(custom).map(|layout| {
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
            layout.text().name(),
            layout.generates(),
            layout.source().to_owned(),
        )
    }))
}
