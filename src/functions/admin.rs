//! Functions for operators.

use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::ledger;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::timestamptz::from_instant;

#[pg_extern(sql = "")]
fn flake_accept_clock() -> TimestampWithTimeZone {
    from_instant(ledger::accept_clock().or_raise())
}

c_symbol!(flake_accept_clock);
