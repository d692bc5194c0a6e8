//! The proof that all keys of a table are below the next ID, and other conditions of a table whose keys are to be IDs.

use flake_core::ledger::time::grant::MAX_AHEAD_MICROS;
use flake_core::{BUILTIN, Error as CoreError, Layout, Remedy};
use pgrx::PgSqlErrorCode::*;

use super::constraints::require_allowed;
use super::key::{Key, NOT_READY, Purpose};
use crate::clock;
use crate::error::OrRaise;
use crate::layouts::{catalog, custom};
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::random::random;
use crate::postgres::report::warning;
use crate::postgres::transaction::has_one_snapshot;
use crate::session::layout_source::LayoutSource;
use crate::session::next_id;
use crate::session::stores::LAYOUTS;

/// Checks the conditions that do not depend on the rows of the table.
pub fn check(purpose: Purpose, table: &str, layout: &Layout) {
    if layout.has_tag() {
        purpose
            .refuse(table, ERRCODE_INVALID_PARAMETER_VALUE)
            .detail(format!("Layout \"{}\" has a tag field, which needs a number from you.", layout.name()))
            .hint("Set the default flake_next(layout, tag) by ALTER TABLE.")
            .raise();
    }
    if has_one_snapshot() {
        purpose
            .refuse(table, ERRCODE_INVALID_TRANSACTION_STATE)
            .detail("A transaction of this isolation level does not see keys that were committed after it began.")
            .hint("Use READ COMMITTED.")
            .raise();
    }
}

/// Raises an error if a key of the table is not below all IDs that may be made from now on, or if a constraint refuses them. Returns the
/// smallest of these IDs, and the greatest key. If `reads_all` is false, only keys that are not below it are looked for.
pub fn prove(key: &Key, layout: &Layout, reads_all: bool) -> (i64, Option<i64>) {
    let first = floor(key.purpose, &to_utf8_lossy(&key.table), layout);
    let greatest = key.greatest_from(if reads_all { i64::MIN } else { first });
    require_below(key, layout, first, greatest);
    require_allowed(key, first);
    (first, greatest)
}

/// Warns if the keys up to `greatest` are numbers that the layout reads as instants near its epoch: a `DELETE` of what is older than a
/// day would remove all rows.
pub fn warn_of_times(key: &Key, layout: &Layout, greatest: i64, first: i64) {
    const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;
    // A negative key has no time: functions that read it raise an error.
    let Ok(tick) = layout.tick_of(greatest.max(0).unsigned_abs()) else { return };
    if layout.start_of(tick) - layout.epoch() < DAY_MICROS {
        let (table, column) = (to_utf8_lossy(&key.table), to_utf8_lossy(&key.column));
        warning(
            format!("the keys that {table} has contain no time"),
            Some(&format!(
                "Layout \"{}\" reads them as times near its epoch, so a DELETE of rows older than a day would find all of them.",
                layout.name()
            )),
            &format!(
                "Wherever you compare times, add the condition {column} >= {first}. Clients that ask a sequence for keys, by \
                 currval() or lastval(), need flake_adopt() instead."
            ),
        );
    }
}

/// Warns of columns that may refer to the key without a foreign key.
pub fn warn_of(table: &str, columns: &[String]) {
    const SHOWN: usize = 10;
    if !columns.is_empty() {
        let more = columns.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let shown = columns[..columns.len().min(SHOWN)].join(", ");
        warning(
            format!("columns may be too small for IDs of {table}"),
            Some(&format!("By their names, these columns refer to its key, without a foreign key: {shown}{more}.")),
            "If they do refer to it, change their types to bigint, or bigint[], before you insert rows.",
        );
    }
}

/// Makes an ID. Returns the smallest ID that may be made from then on.
pub fn floor(purpose: Purpose, table: &str, layout: &Layout) -> i64 {
    let id = next_id(&LAYOUTS, LayoutSource::by_name(layout.name().as_bytes()), random).or_raise();
    match layout.floor(id) {
        Err(CoreError::NotTimeOrdered { .. }) => purpose
            .refuse(table, ERRCODE_INVALID_PARAMETER_VALUE)
            .detail(format!(
                "IDs of layout \"{}\" are not in the order of time, so new IDs can be equal to keys of the table.",
                layout.name()
            ))
            .hint("Use a layout that has a time in the column \"sortable_until\" of the view flake_layouts.")
            .raise(),
        floor => floor.or_raise(),
    }
}

/// Raises an error if the greatest key is not below the first ID.
fn require_below(key: &Key, layout: &Layout, first: i64, greatest: Option<i64>) {
    if let Some(greatest) = greatest.filter(|&greatest| greatest >= first) {
        let custom = catalog::names();
        let custom = custom.iter().filter_map(|name| custom::find(name).ok().flatten());
        let remedy = layout.remedy(greatest, clock::now(), MAX_AHEAD_MICROS, BUILTIN.iter().chain(custom));
        let layout = layout.name();
        key.purpose
            .refuse(&to_utf8_lossy(&key.table), NOT_READY)
            .detail(format!("Its greatest ID is {greatest}, and the next ID of layout \"{layout}\" would be {first}."))
            .hint(match remedy {
                Remedy::StartAbove => {
                    format!("A superuser can run SELECT flake_start_above({greatest}, '{layout}') first.")
                }
                Remedy::Layouts(names) => format!("IDs of these layouts are above it: {}.", names.join(", ")),
                Remedy::EarlierEpoch => "IDs of a custom layout with an earlier epoch can be above it.".to_owned(),
                Remedy::NoRoom => {
                    "Too few numbers are left above it. Give the rows IDs by their time, as docs/how-to/convert.md \
                                   does."
                        .to_owned()
                }
            })
            .raise();
    }
}
