//! flake_decode: an ID as a row of its parts.
#![allow(unsafe_code, reason = "pgrx makes jsonb by way of text, which takes most of a call's time")]

use std::ptr;

use flake_core::Layout;
use pgrx::prelude::*;

use crate::error::{OrRaise, altered_type};
use crate::layouts::by_name;
use crate::postgres::call::{Call, Text};
use crate::postgres::entry_point::entry_point;
use crate::postgres::guard::guarded;
use crate::postgres::rows::row;
use crate::postgres::timestamptz::from_instant;

entry_point!(flake_decode(id: i64, layout: Text<'_>), |call| {
    // SAFETY: nothing is borrowed that an error could leave borrowed.
    unsafe { guarded(|| decode(call, id, layout.bytes())) }
});

/// The columns of flake_parts in sql/flake.sql.
const TYPES: [pg_sys::Oid; 5] =
    [pg_sys::TEXTOID, pg_sys::TIMESTAMPTZOID, pg_sys::INT8OID, pg_sys::INT8OID, pg_sys::JSONBOID];

fn decode(call: Call, id: i64, layout: &[u8]) -> pg_sys::Datum {
    let layout = by_name(layout);
    let id = id as u64;
    let parts = layout.unpack(id).or_raise();
    let columns = [
        layout.name().into_datum(),
        from_instant(layout.start_of(parts.tick)).into_datum(),
        (parts.worker as i64).into_datum(),
        (parts.sequence as i64).into_datum(),
        Some(fields(layout, id)),
    ];
    // SAFETY: the columns have these types, and flake_decode caches nothing else.
    unsafe { row(call, TYPES, columns) }.ok_or_else(|| altered_type("flake_parts")).or_raise()
}

/// Returns all named fields with their numbers as jsonb.
fn fields(layout: &Layout, id: u64) -> pg_sys::Datum {
    let mut numbers = layout.numbers(id);
    // PostgreSQL expects the keys of a finished object in the order of jsonb: by length, then by bytes.
    numbers.sort_unstable_by_key(|(name, _)| (name.len(), *name));
    let pair = |(name, number): (&str, u64)| {
        let mut pair = pg_sys::JsonbPair::default();
        pair.key.type_ = pg_sys::jbvType::jbvString;
        pair.key.val.string.len = name.len() as i32;
        pair.key.val.string.val = name.as_ptr().cast_mut().cast();
        pair.value.type_ = pg_sys::jbvType::jbvNumeric;
        pair.value.val.numeric = numeric(number);
        pair
    };
    let mut pairs: Vec<_> = numbers.into_iter().map(pair).collect();
    let mut object = pg_sys::JsonbValue { type_: pg_sys::jbvType::jbvObject, ..Default::default() };
    object.val.object.nPairs = pairs.len() as i32;
    object.val.object.pairs = pairs.as_mut_ptr();
    // SAFETY: it copies the object with its names and numbers.
    unsafe { pg_sys::Datum::from(pg_sys::JsonbValueToJsonb(&raw mut object)) }
}

fn numeric(number: u64) -> pg_sys::Numeric {
    match i64::try_from(number) {
        // SAFETY: it returns a palloc'd numeric.
        Ok(number) => unsafe { pg_sys::int64_to_numeric(number) },
        Err(_) => {
            let numeric = AnyNumeric::from(number).into_datum();
            numeric.map_or(ptr::null_mut(), |numeric| numeric.cast_mut_ptr())
        }
    }
}
