//! Converts IDs from parts, from and to text, and into drawings.
#![allow(unsafe_code, reason = "the call site keeps the layout")]

use std::collections::BTreeMap;

use flake_core::{LONGEST_TEXT, Layout};
use pgrx::PgSqlErrorCode::*;
use pgrx::pg_sys::Datum;
use pgrx::prelude::*;
use serde_json::value::RawValue;

use crate::error::{Error, OrRaise, SEE_FIELDS};
use crate::layouts::argument::{look_up, remembered, with_layout};
use crate::layouts::by_name;
use crate::postgres::call::{Text, text_datum};
use crate::postgres::encoding::escape_non_ascii;
use crate::postgres::entry_point::{c_symbol, entry_point};
use crate::postgres::guard::guarded;
use crate::postgres::json::Json;
use crate::postgres::timestamptz::to_instant;

/// Errors show and count no more characters of a long text than this.
const LONGEST_READ: usize = 1000;

entry_point!(flake_to_text(id: i64, layout: Text<'_>), |call| {
    let encode = |layout: &Layout| {
        let mut buffer = [0; LONGEST_TEXT];
        let length = layout.encode_into(id as u64, &mut buffer)?.len();
        Ok((buffer, length))
    };
    // SAFETY: `layout` is argument 1, and the function caches nothing else. If the allocation raises an error, it jumps over this
    // function, which holds nothing that must be dropped.
    unsafe {
        let (buffer, length) = with_layout(call, 1, layout, encode);
        text_datum(&buffer[..length])
    }
});

entry_point!(flake_from_text(text: Text<'_>, layout: Text<'_>), |call| {
    let short = text.inline_bytes().filter(|text| text.len() <= LONGEST_READ);
    // SAFETY: `layout` is argument 1, and the function caches nothing else. Nothing must be dropped.
    unsafe {
        let id = short.and_then(|text| remembered(call, layout)?.parse(text).ok());
        // An error shows the text, whose encoding may be any.
        let parse = || look_up(call, 1, layout).parse(&escape_non_ascii(text.bytes(), LONGEST_READ)).or_raise();
        Datum::from(id.unwrap_or_else(|| guarded(parse)))
    }
});

/// Returns a number without a fraction of zeros, with which PostgreSQL writes a number as it came.
fn whole(number: &str) -> &str {
    let fraction = number.split_once('.').filter(|(_, zeros)| zeros.bytes().all(|digit| digit == b'0'));
    fraction.map_or(number, |(whole, _)| whole)
}

#[pg_extern(sql = "")]
fn flake_make(at: TimestampWithTimeZone, fields: Json, layout: &[u8]) -> i64 {
    let layout = by_name(layout);
    // Values stay unparsed, so that an error shows a wrong value as it was written.
    let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(&fields.0) else {
        Error::invalid("fields must be a JSON object")
            .detail("Its keys are names of fields, its values their numbers.")
            .hint("For example: {\"worker\": 3, \"sequence\": 7}. Omitted fields are 0.")
            .raise()
    };
    let number = |(field, value): (String, &RawValue)| match whole(value.get()).parse() {
        Ok(number) => (field, number),
        Err(_) => {
            let is_number = value.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
            let (layout, value) = (layout.name(), shortened(value.get()));
            Error::of(
                if is_number { ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE } else { ERRCODE_INVALID_PARAMETER_VALUE },
                format!("invalid value for field \"{}\" of layout \"{layout}\": {value}", shortened(&field)),
            )
            .detail("Fields hold whole numbers that are not negative.")
            .hint(SEE_FIELDS)
            .raise()
        }
    };
    let numbers: BTreeMap<String, u64> = fields.into_iter().map(number).collect();
    let tick = layout.tick_at(to_instant(at)).or_raise();
    layout.make(tick, &numbers).or_raise() as i64
}

/// Returns a text of any length in the form that an error message shows.
fn shortened(text: &str) -> String {
    const MAX_SHOWN_CHARACTERS: usize = 40;
    match text.char_indices().nth(MAX_SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[pg_extern(sql = "")]
fn flake_explain(id: i64, layout: &[u8]) -> String {
    by_name(layout).explain(id as u64).or_raise()
}

c_symbol!(flake_make, flake_explain);
