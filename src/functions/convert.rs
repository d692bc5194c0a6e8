//! IDs from their parts and from text, and the way back.

use std::collections::BTreeMap;

use flake_core::Error;
use pgrx::prelude::*;
use serde_json::Value;

use crate::clock::instant;
use crate::layouts::custom::ascii;
use crate::error::{OrRaise, raise};
use crate::postgres::json::Json;
use crate::layouts::by_name;

#[pg_extern(sql = "")]
fn flake_make(at: i64, fields: Json, layout: &[u8]) -> i64 {
    let layout = by_name(layout);
    let Value::Object(fields) = fields.0 else { raise(Error::FieldsNotAnObject) };
    let number = |(field, value): (String, Value)| match value.as_u64() {
        Some(number) => (field, number),
        None => raise(Error::BadNumber {
            layout: layout.name().to_owned().into(),
            field,
            numeric: value.is_number(),
            value: value.to_string(),
        }),
    };
    let numbers: BTreeMap<String, u64> = fields.into_iter().map(number).collect();
    let tick = layout.tick_at(instant(at)).or_raise();
    layout.make(tick, &numbers).or_raise() as i64
}

#[pg_extern(sql = "")]
fn flake_encode(id: i64, layout: &[u8]) -> String {
    by_name(layout).encode(id as u64).or_raise()
}

#[pg_extern(sql = "")]
fn flake_parse(text: &[u8], layout: &[u8]) -> i64 {
    by_name(layout).parse(&ascii(text)).or_raise() as i64
}

#[pg_extern(sql = "")]
fn flake_explain(id: i64, layout: &[u8]) -> String {
    by_name(layout).explain(id as u64).or_raise()
}
