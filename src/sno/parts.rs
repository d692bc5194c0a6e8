//! The parts of a sno, and snos of instants.

use flake_core::{Sno, SnoParts};
use pgrx::datum::{Range, TimestampWithTimeZone};
use pgrx::prelude::*;

use super::SnoDatum;
use crate::postgres::call::entry_point;
use crate::clock::{instant, timestamptz};
use crate::functions::decode::row;
use crate::error::OrRaise;
use crate::layouts::sql_instant;
use crate::functions::time::ends;

entry_point!(pg_finfo_sno_parts, sno_parts, |call| {
    #[allow(unsafe_code, reason = "a guard")]
    // SAFETY: the call is PostgreSQL's, of a STRICT function; the columns are of the types that sql/sno.sql declares.
    unsafe {
        pg_sys::panic::pgrx_extern_c_guard(|| row(call.raw(), columns(call.sno_at(0))))
    }
});

fn columns(sno: Sno) -> [Option<pg_sys::Datum>; 5] {
    let parts = sno.parts();
    [
        sql_instant(sno.instant()).into_datum(),
        parts.tick_tock.into_datum(),
        i32::from(parts.metabyte).into_datum(),
        i32::from(parts.partition).into_datum(),
        i32::from(parts.sequence).into_datum(),
    ]
}

#[pg_extern(sql = "")]
fn sno_timestamp(sno: SnoDatum) -> i64 {
    timestamptz(sno.0.instant())
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
fn sno_sequence(sno: SnoDatum) -> i32 {
    sno.0.parts().sequence.into()
}

#[pg_extern(sql = "")]
fn sno_tick_tock(sno: SnoDatum) -> bool {
    sno.0.parts().tick_tock
}

#[pg_extern(sql = "")]
fn sno_make(at: i64, metabyte: i32, partition: i32, sequence: i32, tick_tock: bool) -> SnoDatum {
    let (metabyte, partition, sequence) = (metabyte.into(), partition.into(), sequence.into());
    SnoDatum(SnoParts::at(instant(at), metabyte, partition, sequence, tick_tock).or_raise().pack())
}

#[pg_extern(sql = "")]
fn sno_with_metabyte(sno: SnoDatum, metabyte: i32) -> SnoDatum {
    SnoDatum(sno.0.with_metabyte(flake_core::sno::metabyte(metabyte.into()).or_raise()))
}

#[pg_extern(sql = "")]
fn sno_min(at: i64) -> SnoDatum {
    SnoDatum(Sno::min_at(instant(at)).or_raise())
}

#[pg_extern(sql = "")]
fn sno_max(at: i64) -> SnoDatum {
    SnoDatum(Sno::max_at(instant(at)).or_raise())
}

#[pg_extern(sql = "")]
fn sno_first(span: Range<TimestampWithTimeZone>) -> SnoDatum {
    SnoDatum(during(&span).0)
}

#[pg_extern(sql = "")]
fn sno_last(span: Range<TimestampWithTimeZone>) -> SnoDatum {
    SnoDatum(during(&span).1)
}

/// The ends of a span, or two that nothing is between.
fn during(span: &Range<TimestampWithTimeZone>) -> (Sno, Sno) {
    let found = ends(span).and_then(|(from, to, to_included)| Sno::during(from, to, to_included));
    found.unwrap_or((Sno::from_bytes([u8::MAX; 10]), Sno::ZERO))
}

#[pg_extern(sql = "")]
fn sno_explain(sno: SnoDatum) -> String {
    sno.0.explain()
}
