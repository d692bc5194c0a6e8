//! IDs from their parts, as text, and as a drawing.

use std::collections::BTreeMap;

use pgrx::prelude::*;
use serde_json::value::RawValue;

use crate::error::{Error, OrRaise, raise};
use crate::layouts::by_name;
use crate::postgres::encoding::escape_non_ascii;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::json::Json;
use crate::postgres::timestamptz::to_instant;

/// No text form is longer. Errors show and count the characters of a longer text up to here.
const LONGEST_TEXT: usize = 1000;

#[pg_extern(sql = "")]
fn flake_make(at: TimestampWithTimeZone, fields: Json, layout: &[u8]) -> i64 {
    let layout = by_name(layout);
    // Values stay unparsed: what is no number of a field is shown as it was written.
    let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(&fields.0) else {
        raise(Error::FieldsNotAnObject)
    };
    let number = |(field, value): (String, &RawValue)| match value.get().parse() {
        Ok(number) => (field, number),
        Err(_) => raise(Error::BadNumber {
            layout: layout.name().to_owned().into(),
            field,
            is_number: value.get().starts_with(|c: char| c == '-' || c.is_ascii_digit()),
            value: shortened(value.get()),
        }),
    };
    let numbers: BTreeMap<String, u64> = fields.into_iter().map(number).collect();
    let tick = layout.tick_at(to_instant(at)).or_raise();
    layout.make(tick, &numbers).or_raise() as i64
}

/// Returns a text of any length as an error message shows it.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[pg_extern(sql = "")]
fn flake_encode(id: i64, layout: &[u8]) -> String {
    by_name(layout).encode(id as u64).or_raise()
}

#[pg_extern(sql = "")]
fn flake_parse(text: &[u8], layout: &[u8]) -> i64 {
    by_name(layout).parse(&escape_non_ascii(text, LONGEST_TEXT)).or_raise() as i64
}

#[pg_extern(sql = "")]
fn flake_explain(id: i64, layout: &[u8]) -> String {
    by_name(layout).explain(id as u64).or_raise()
}

c_symbol!(flake_make, flake_encode, flake_parse, flake_explain);
