//! flake_convert switches a table with numeric keys to IDs of a layout.
//!
//! It only changes the default of the key, so it is fast whatever the table's size. The danger is a key above the next ID: rows
//! would no longer be in the order of their keys, and a key could be made twice. So the function proves, under the table's lock,
//! that all keys are below the next ID. It does the same before it takes the lock, because finding the greatest key can take long.
#![allow(unsafe_code, reason = "makes a row")]

mod clients;
mod constraints;
pub mod key;
pub mod proof;
mod switch;

use pgrx::prelude::*;
use pgrx::spi::quote_literal;

use self::clients::{require_choosable, warn_of_sequences};
use self::key::{Key, NOT_READY, Purpose, lookalikes};
use self::proof::{check, prove, warn_of, warn_of_times};
use self::switch::switch;
use super::null_argument;
use crate::error::{OrRaise, altered_type};
use crate::layouts::by_name;
use crate::ledger;
use crate::postgres::call::{Call, Text};
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::entry_point::entry_point;
use crate::postgres::extension;
use crate::postgres::guard::guarded;
use crate::postgres::local_settings::lock_timeout;
use crate::postgres::recovery;
use crate::postgres::relation::quoted_schema;
use crate::postgres::rows::row;

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
    let key = Key::of(table, flake, Purpose::Convert);
    let name = to_utf8_lossy(&key.table).into_owned();
    check(Purpose::Convert, &name, layout);
    require_timeout(&name);
    if !force {
        require_choosable(&key);
    }
    // If many rows were deleted, it takes long to find the greatest key. No session waits for the lock yet.
    let (_, greatest) = prove(&key, layout, true);
    warn_of(&name, &lookalikes(&key, layout));
    warn_of_sequences(&key);
    key.lock();
    let key = Key::of(table, flake, Purpose::Convert);
    if !force {
        require_choosable(&key);
    }
    let (first, _) = prove(&key, layout, false);
    let schema = quoted_schema(flake.schema).unwrap_or_default();
    let makes = format!(".flake_next({}::pg_catalog.text)", quote_literal(layout.name()));
    let undo = switch(&key, &[schema.as_slice(), makes.as_bytes()].concat());
    if let Some(greatest) = greatest {
        warn_of_times(&key, layout, greatest, first);
    }
    // A text is stored like a bytea, so these bytes can be returned as one.
    let columns = [first.into_datum(), undo.as_slice().into_datum()];
    // SAFETY: the columns have these types, and flake_convert caches nothing else.
    let row = unsafe { row(call, [pg_sys::INT8OID, pg_sys::TEXTOID], columns) };
    row.ok_or_else(|| altered_type("record")).or_raise()
}

/// Raises an error if a wait for the table's lock has no limit.
fn require_timeout(table: &str) {
    if lock_timeout() == 0 {
        Purpose::Convert
            .refuse(table, NOT_READY)
            .detail(
                "While flake_convert waits for its lock, every other use of the table waits too, and lock_timeout \
                 is 0, which sets no limit.",
            )
            .hint("Run SET LOCAL lock_timeout = '2s' before, in the same transaction.")
            .raise();
    }
}
