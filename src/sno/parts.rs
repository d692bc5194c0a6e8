//! The parts of a sno, and the snos of an instant.

use flake_core::{Sno, SnoParts};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;

use super::datum::SnoDatum;
use crate::error::{OrRaise, altered_type};
use crate::ledger;
use crate::postgres::entry_point::{c_symbol, entry_point};
use crate::postgres::guard::guarded;
use crate::postgres::rows::row;
use crate::postgres::timestamptz::{from_instant, to_instant};

entry_point!(sno_fields(sno: SnoDatum), |call| {
    #[allow(unsafe_code, reason = "makes a row under a guard")]
    // SAFETY: the columns have these types, and the function caches nothing else.
    unsafe {
        guarded(|| {
            row(call, TYPES, columns(sno.0)).ok_or_else(|| altered_type("sno_parts")).or_raise()
        })
    }
});

/// The columns of sno_parts in sql/sno.sql.
const TYPES: [pg_sys::Oid; 5] =
    [pg_sys::TIMESTAMPTZOID, pg_sys::BOOLOID, pg_sys::INT4OID, pg_sys::INT4OID, pg_sys::INT4OID];

fn columns(sno: Sno) -> [Option<pg_sys::Datum>; 5] {
    let parts = sno.parts();
    [
        from_instant(sno.instant()).into_datum(),
        parts.tick_tock.into_datum(),
        i32::from(parts.metabyte).into_datum(),
        i32::from(parts.partition).into_datum(),
        i32::from(parts.sequence).into_datum(),
    ]
}

#[pg_extern(sql = "")]
fn sno_timestamp(sno: SnoDatum) -> TimestampWithTimeZone {
    from_instant(sno.0.instant())
}

#[pg_extern(sql = "")]
fn sno_metabyte(sno: SnoDatum) -> i32 {
    sno.0.parts().metabyte.into()
}

#[pg_extern(sql = "")]
fn sno_partition(sno: SnoDatum) -> i32 {
    sno.0.parts().partition.into()
}

#[pg_extern(sql = "")]
fn sno_make(at: TimestampWithTimeZone, metabyte: i32, partition: i32, sequence: i32, tick_tock: bool) -> SnoDatum {
    let (metabyte, partition, sequence) = (metabyte.into(), partition.into(), sequence.into());
    SnoDatum(SnoParts::at(to_instant(at), metabyte, partition, sequence, tick_tock).or_raise().pack())
}

#[pg_extern(sql = "")]
fn sno_with_metabyte(sno: SnoDatum, metabyte: i32) -> SnoDatum {
    SnoDatum(sno.0.with_metabyte(flake_core::sno::metabyte(metabyte.into()).or_raise()))
}

#[pg_extern(sql = "")]
fn sno_min(at: TimestampWithTimeZone) -> SnoDatum {
    SnoDatum(Sno::min_at(to_instant(at)).or_raise())
}

#[pg_extern(sql = "")]
fn sno_max(at: TimestampWithTimeZone) -> SnoDatum {
    SnoDatum(Sno::max_at(to_instant(at)).or_raise())
}

#[pg_extern(sql = "")]
fn sno_node(sno: SnoDatum) -> Option<i32> {
    sno.0.node_of(ledger::node_to_read().or_raise()).map(|node| node as i32)
}

#[pg_extern(sql = "")]
fn sno_explain(sno: SnoDatum) -> String {
    sno.0.explain()
}

c_symbol!(sno_timestamp, sno_metabyte, sno_partition, sno_make, sno_with_metabyte);
c_symbol!(sno_min, sno_max, sno_node, sno_explain);
