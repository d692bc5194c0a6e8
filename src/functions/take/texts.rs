//! The queries of flake_take.

use std::ffi::CString;

use pgrx::pg_sys;
use pgrx::spi::quote_literal;

use super::key::Key;
use crate::postgres::relation;

/// $1 is the consumer, $2 the table. Every name is qualified, because the caller's search_path is in force. Keys and positions are cast
/// to their base type, because in the schema of flake, others may have made operators for a domain of sno.
pub struct Texts {
    /// Returns whether the position is ahead of the clock and of the horizon, which can go back a little, and whether there is a
    /// row between the position and the horizon.
    pub look: CString,
    pub lock: CString,
    /// Returns rows and keys, $3 at most, and in addition all rows with the last key, because the position moves over them too.
    pub rows: CString,
    /// Moves the position to $3.
    pub advance: CString,
}

const LOOK: &str = "
    SELECT p.last::{type} OPERATOR({operators}.>) {now},
           EXISTS (SELECT FROM {table} t
                   WHERE t.{key}::{type} OPERATOR({operators}.>) {last} AND t.{key}::{type} OPERATOR({operators}.<) {bound})
    FROM {positions} p WHERE {of}";
const LOCK: &str = "SELECT FROM {positions} p WHERE {of} FOR UPDATE";
/// The cast comes first because a column could otherwise capture the name of the whole row.
const ROWS: &str = "
    SELECT (t.*)::{table}, t.{key}::{type} FROM {table} t
    WHERE t.{key}::{type} OPERATOR({operators}.>) (SELECT {last} FROM {positions} p WHERE {of})
      AND t.{key}::{type} OPERATOR({operators}.<) {bound}
    ORDER BY t.{key} FETCH FIRST $3 ROWS WITH TIES";
const ADVANCE: &str = "UPDATE {positions} p SET last = $3 WHERE {of}";

const OF: &str = "p.name::pg_catalog.text OPERATOR(pg_catalog.=) $1 AND p.source OPERATOR(pg_catalog.=) $2";

/// Parts of the queries above. They contain the names below.
const PARTS: [(&str, &str); 4] = [
    ("of", OF),
    ("bound", "{flake}.{min}({flake}.flake_horizon(){layout})"),
    ("now", "{flake}.{min}(greatest({flake}.flake_horizon(), pg_catalog.clock_timestamp()){layout})"),
    ("last", "COALESCE(p.last::{type}, {lowest}::{type})"),
];

impl Texts {
    /// Returns None if a relation has been dropped.
    pub fn new(schema: pg_sys::Oid, key: &Key, table: pg_sys::Oid, positions: pg_sys::Oid) -> Option<Self> {
        let flake = relation::quoted_schema(schema)?;
        let sno = [&flake[..], b".sno"].concat();
        let layout = key.layout.as_ref().map(|layout| format!(", {}::pg_catalog.text", quote_literal(layout)));
        let of_type: [(&str, &[u8]); 5] = match &layout {
            Some(layout) => [
                ("min", b"flake_min"),
                ("layout", layout.as_bytes()),
                ("operators", b"pg_catalog"),
                ("type", b"pg_catalog.int8"),
                ("lowest", b"'-9223372036854775808'"),
            ],
            None => [
                ("min", b"sno_min"),
                ("layout", b""),
                ("operators", &flake),
                ("type", &sno),
                ("lowest", b"'2222222222222222'"),
            ],
        };
        let (table, positions) = (relation::quoted_name(table)?, relation::quoted_name(positions)?);
        let mut names = of_type.to_vec();
        names.extend([
            ("flake", &flake[..]),
            ("table", &table[..]),
            ("positions", &positions[..]),
            ("key", &key.column[..]),
        ]);
        let parts = PARTS.map(|(name, template)| (name, fill(template, &names)));
        names.extend(parts.iter().map(|(name, part)| (*name, &part[..])));
        let text = |template| CString::new(fill(template, &names)).ok();
        Some(Self { look: text(LOOK)?, lock: text(LOCK)?, rows: text(ROWS)?, advance: text(ADVANCE)? })
    }
}

/// Replaces the names in a text, in the encoding of the database.
fn fill(template: &str, names: &[(&str, &[u8])]) -> Vec<u8> {
    let mut parts = template.split('{');
    let mut text = parts.next().unwrap_or_default().as_bytes().to_vec();
    for (name, rest) in parts.filter_map(|part| part.split_once('}')) {
        text.extend(names.iter().find(|(of, _)| *of == name).map_or(&b""[..], |(_, value)| value));
        text.extend(rest.bytes());
    }
    text
}
