//! IDs from their parts, as text, and as a drawing.

use std::collections::BTreeMap;

use pgrx::prelude::*;
use serde_json::Value;

use crate::error::{Error, OrRaise, raise};
use crate::layouts::by_name;
use crate::postgres::encoding::escape_non_ascii;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::json::Json;
use crate::postgres::timestamptz::to_instant;

#[pg_extern(sql = "")]
fn flake_make(at: TimestampWithTimeZone, fields: Json, layout: &[u8]) -> i64 {
    let layout = by_name(layout);
    let Value::Object(fields) = fields.0 else { raise(Error::FieldsNotAnObject) };
    let number = |(field, value): (String, Value)| match value.as_u64() {
        Some(number) => (field, number),
        None => raise(Error::BadNumber {
            layout: layout.name().to_owned().into(),
            field,
            is_number: value.is_number(),
            value: value.to_string(),
        }),
    };
    let numbers: BTreeMap<String, u64> = fields.into_iter().map(number).collect();
    let tick = layout.tick_at(to_instant(at)).or_raise();
    layout.make(tick, &numbers).or_raise() as i64
}

#[pg_extern(sql = "")]
fn flake_encode(id: i64, layout: &[u8]) -> String {
    by_name(layout).encode(id as u64).or_raise()
}

#[pg_extern(sql = "")]
fn flake_parse(text: &[u8], layout: &[u8]) -> i64 {
    by_name(layout).parse(&escape_non_ascii(text)).or_raise() as i64
}

#[pg_extern(sql = "")]
fn flake_explain(id: i64, layout: &[u8]) -> String {
    by_name(layout).explain(id as u64).or_raise()
}

c_symbol!(flake_make, flake_encode, flake_parse, flake_explain);
