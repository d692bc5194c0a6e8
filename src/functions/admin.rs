//! Functions for operators.

use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::ledger;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::recovery;
use crate::postgres::timestamptz::from_instant;

#[pg_extern(sql = "")]
fn flake_record_mark() {
    ledger::record_mark().or_raise()
}

#[pg_extern(sql = "")]
fn flake_accept_clock() -> TimestampWithTimeZone {
    recovery::refuse(c"flake_accept_clock()");
    from_instant(ledger::accept_clock().or_raise())
}

c_symbol!(flake_record_mark);
c_symbol!(flake_accept_clock);
