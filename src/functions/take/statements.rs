//! The statements of flake_take.

use std::ffi::CString;

use pgrx::pg_sys;
use pgrx::spi::quote_literal;

use super::key::Key;
use crate::postgres::relation;

/// $1 is the consumer, $2 the table. Every name is qualified, because the caller's search_path is in force. Keys and positions are cast
/// to their base type, because in the schema of flake, others may have made operators for a domain of sno.
pub struct Statements {
    /// Returns whether the position is ahead of the clock and of the watermark, which can go back a little, and whether there is a
    /// row between the position and the watermark.
    pub look: CString,
    /// Waits for the consumer's turn.
    pub lock: CString,
    /// Returns rows and keys, $3 at most, and in addition all rows with the last key, because the position moves over them too.
    pub rows: CString,
    /// Moves the position to $3.
    pub advance: CString,
}

impl Statements {
    /// Returns None if a relation has been dropped.
    pub fn new(schema: pg_sys::Oid, key: &Key, table: pg_sys::Oid, positions: pg_sys::Oid) -> Option<Self> {
        let flake = chars(&relation::quoted_schema(schema)?);
        let (table, positions) = (chars(&relation::quoted_name(table)?), chars(&relation::quoted_name(positions)?));
        let column = chars(&key.column);
        let (min, layout, operators, of, lowest) = match &key.layout {
            Some(layout) => {
                let layout = format!(", {}::pg_catalog.text", chars(quote_literal(layout).as_bytes()));
                ("flake_min", layout, "pg_catalog", "pg_catalog.int8".to_owned(), "'-9223372036854775808'")
            }
            None => ("sno_min", String::new(), &*flake, format!("{flake}.sno"), "'2222222222222222'"),
        };
        let own = "p.name::pg_catalog.text OPERATOR(pg_catalog.=) $1 AND p.source OPERATOR(pg_catalog.=) $2";
        let bound = format!("{flake}.{min}({flake}.flake_watermark(){layout})");
        let now = format!("{flake}.{min}(greatest({flake}.flake_watermark(), pg_catalog.clock_timestamp()){layout})");
        let last = format!("COALESCE(p.last::{of}, {lowest}::{of})");
        let look = format!(
            "SELECT p.last::{of} OPERATOR({operators}.>) {now},
                    EXISTS (SELECT FROM {table} t WHERE t.{column}::{of} OPERATOR({operators}.>) {last}
                                                    AND t.{column}::{of} OPERATOR({operators}.<) {bound})
             FROM {positions} p WHERE {own}"
        );
        let lock = format!("SELECT FROM {positions} p WHERE {own} FOR UPDATE");
        // The cast comes first because a column could otherwise capture the name of the whole row.
        let rows = format!(
            "SELECT (t.*)::{table}, t.{column}::{of} FROM {table} t
             WHERE t.{column}::{of} OPERATOR({operators}.>) (SELECT {last} FROM {positions} p WHERE {own})
               AND t.{column}::{of} OPERATOR({operators}.<) {bound}
             ORDER BY t.{column} FETCH FIRST $3 ROWS WITH TIES"
        );
        let advance = format!("UPDATE {positions} p SET last = $3 WHERE {own}");
        let [look, lock, rows, advance] = [look, lock, rows, advance].map(|text| bytes(&text));
        Some(Self { look: look?, lock: lock?, rows: rows?, advance: advance? })
    }
}

/// Returns a text with a character for each byte of a name, which is in the encoding of the database.
fn chars(name: &[u8]) -> String {
    name.iter().copied().map(char::from).collect()
}

/// Returns the bytes that [`chars`] has made characters of.
fn bytes(text: &str) -> Option<CString> {
    CString::new(text.chars().map(|char| char as u8).collect::<Vec<_>>()).ok()
}
