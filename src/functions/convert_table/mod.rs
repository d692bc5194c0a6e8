//! flake_convert switches a table with numeric keys to IDs of a layout.
//!
//! It only changes the default of the key, so it is fast whatever the table's size. The danger is a key above the next ID: rows
//! would no longer be in the order of their keys, and a key could be made twice. So the function proves, under the table's lock,
//! that all keys are below the next ID. It does the same before it takes the lock, because finding the greatest key can take long.
#![allow(unsafe_code, reason = "makes a row")]

mod clients;
mod constraints;
mod key;
mod statements;
mod switch;

use flake_core::ledger::time::grant::FAR;
use flake_core::{BUILTIN, Error as CoreError, Layout, Remedy};
use pgrx::PgSqlErrorCode::*;
use pgrx::prelude::*;
use pgrx::spi::{SpiError, quote_literal};

use self::clients::{require_choosable, warn_of_sequences};
use self::constraints::require_allowed;
use self::key::{Key, NOT_READY, lookalikes, unconvertible};
use self::statements::{rows, run};
use self::switch::switch;
use super::null_argument;
use crate::clock;
use crate::error::{OrRaise, altered_type};
use crate::layouts::{by_name, catalog, custom};
use crate::ledger;
use crate::postgres::call::{Call, Text};
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::entry_point::entry_point;
use crate::postgres::extension;
use crate::postgres::guard::guarded;
use crate::postgres::local_settings::lock_timeout;
use crate::postgres::random::random;
use crate::postgres::recovery;
use crate::postgres::report::warning;
use crate::postgres::rows::row;
use crate::postgres::transaction::has_one_snapshot;
use crate::session::layout_source::LayoutSource;
use crate::session::next_id;
use crate::session::stores::LAYOUTS;

entry_point!(flake_convert(table: pg_sys::Oid, layout: Text<'_>, force: bool), |call| {
    // SAFETY: nothing is borrowed that an error could leave borrowed.
    unsafe {
        guarded(|| {
            // A misspelled to_regclass(…) is NULL, and must not look like a converted table.
            if let Some(number) = call.first_null() {
                let why = "There is no table to convert, or no layout to convert it to.";
                null_argument(["relation", "layout", "force"][number], why).raise();
            }
            convert(call, table, layout.bytes(), force)
        })
    }
});

fn convert(call: Call, table: pg_sys::Oid, layout: &[u8], force: bool) -> pg_sys::Datum {
    recovery::refuse(c"flake_convert()");
    let layout = by_name(layout);
    let flake = extension::find(c"flake").ok_or_else(ledger::no_page).or_raise();
    let (first, undo) = Spi::connect_mut(|client| {
        let key = Key::of(client, table, flake)?;
        let name = to_utf8_lossy(&key.table).into_owned();
        check(&name, layout);
        if !force {
            require_choosable(client, &key)?;
        }
        // If many rows were deleted, it takes long to find the greatest key. No session waits for the lock yet.
        let first = floor(&name, layout);
        require_below(&key, layout, first, i64::MIN);
        require_allowed(client, &key, first)?;
        warn_of(&name, &lookalikes(client, &key, layout)?);
        warn_of_sequences(client, &key)?;
        run(client, [b"LOCK TABLE ", &key.table[..], b" IN ACCESS EXCLUSIVE MODE"].concat())?;
        let key = Key::of(client, table, flake)?;
        let first = floor(&name, layout);
        require_below(&key, layout, first, first);
        require_allowed(client, &key, first)?;
        let schema = rows(client, SCHEMA, &[flake.schema.into()])?.into_iter().flatten().flatten().flatten();
        let makes = format!(".flake_next({}::pg_catalog.text)", quote_literal(layout.name()));
        let undo = switch(client, &key, &schema.chain(makes.into_bytes()).collect::<Vec<_>>())?;
        Ok::<_, SpiError>((first, undo))
    })
    .unwrap_or_else(|error| pgrx::error!("{error}"));
    // A text is stored like a bytea, so these bytes can be returned as one.
    let columns = [first.into_datum(), undo.as_slice().into_datum()];
    // SAFETY: the columns have these types, and flake_convert caches nothing else.
    let row = unsafe { row(call, [pg_sys::INT8OID, pg_sys::TEXTOID], columns) };
    row.ok_or_else(|| altered_type("record")).or_raise()
}

const SCHEMA: &str =
    "SELECT ARRAY[pg_catalog.quote_ident(nspname)] FROM pg_catalog.pg_namespace WHERE oid OPERATOR(pg_catalog.=) $1";

/// Checks the conditions that do not depend on the rows of the table.
fn check(table: &str, layout: &Layout) {
    if layout.has_tag() {
        unconvertible(table, ERRCODE_INVALID_PARAMETER_VALUE)
            .detail(format!("Layout \"{}\" has a tag field, which needs a number from you.", layout.name()))
            .hint("Set the default flake_next(layout, tag) by ALTER TABLE.")
            .raise();
    }
    if lock_timeout() == 0 {
        unconvertible(table, NOT_READY)
            .detail(
                "While flake_convert waits for its lock, every other use of the table waits too, and lock_timeout \
                 is 0, which sets no limit.",
            )
            .hint("Run SET LOCAL lock_timeout = '2s' before, in the same transaction.")
            .raise();
    }
    if has_one_snapshot() {
        unconvertible(table, ERRCODE_INVALID_TRANSACTION_STATE)
            .detail("A transaction of this isolation level does not see keys that were committed after it began.")
            .hint("Use READ COMMITTED.")
            .raise();
    }
}

/// Warns of columns that may refer to the key without a foreign key.
fn warn_of(table: &str, columns: &[String]) {
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
fn floor(table: &str, layout: &Layout) -> i64 {
    let id = next_id(&LAYOUTS, LayoutSource::by_name(layout.name().as_bytes()), random).or_raise();
    match layout.floor(id) {
        Err(CoreError::NotTimeOrdered { .. }) => unconvertible(table, ERRCODE_INVALID_PARAMETER_VALUE)
            .detail(format!(
                "IDs of layout \"{}\" are not in the order of time, so new IDs can be equal to keys of the table.",
                layout.name()
            ))
            .hint("Use a layout that has a time in the column \"sortable_until\" of the view flake_layouts.")
            .raise(),
        floor => floor.or_raise(),
    }
}

/// Raises an error if a key is not below the first ID. Checks the keys from a number on.
fn require_below(key: &Key, layout: &Layout, first: i64, from: i64) {
    if let Some(greatest) = key.greatest_from(from).filter(|&greatest| greatest >= first) {
        let custom = catalog::names();
        let custom = custom.iter().filter_map(|name| custom::find(name).ok().flatten());
        let remedy = layout.remedy(greatest, clock::now(), FAR, BUILTIN.iter().chain(custom));
        let layout = layout.name();
        unconvertible(&to_utf8_lossy(&key.table), NOT_READY)
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
