//! Functions for operators.

use flake_core::built_in;
use pgrx::PgSqlErrorCode::*;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;

use crate::error::{Error, OrRaise, superuser_only};
use crate::layouts::{by_name, custom};
use crate::postgres::entry_point::c_symbol;
use crate::postgres::timestamptz::from_instant;
use crate::{ledger, session};

/// CREATE EXTENSION and every upgrade script call this. A new version may have built-in layouts whose names are taken.
#[pg_extern(sql = "")]
fn flake_record_mark() {
    ledger::record_mark().or_raise();
    for (name, layout) in custom::all() {
        if built_in(&name).is_some() && layout.is_ok() {
            Error::of(ERRCODE_WARNING, format!("layout \"{name}\" is not the built-in one"))
                .detail("A custom layout has this name, and takes precedence.")
                .hint(
                    "To use the built-in layout, drop the custom one once nothing uses it, or create it under \
                     another name.",
                )
                .warn();
        }
    }
}

#[pg_extern(sql = "")]
fn flake_accept_clock() -> TimestampWithTimeZone {
    from_instant(ledger::accept_clock().or_raise())
}

#[pg_extern(sql = "")]
fn flake_accept_turn() -> i32 {
    ledger::accept_turn().or_raise() as i32
}

#[pg_extern(sql = "")]
fn flake_start_above(id: i64, layout: &[u8], force: bool) -> TimestampWithTimeZone {
    let layout = by_name(layout);
    let tick = layout.unpack(id as u64).or_raise().tick;
    let end = layout.start_of(tick).saturating_add(layout.tick_length());
    superuser_only("flake_start_above").or_raise();
    from_instant(session::start_above(c"flake_start_above()", end, force).or_raise())
}

c_symbol!(flake_record_mark);
c_symbol!(flake_accept_clock);
c_symbol!(flake_accept_turn);
c_symbol!(flake_start_above);
