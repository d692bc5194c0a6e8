//! The faults that a view of the extension flake_sequences lists, if the database has the extension.

use std::ffi::CString;

use super::finding::{Finding, described};
use super::uses::text;
use crate::postgres::extension;
use crate::postgres::memory::require;
use crate::postgres::queries::Queries;
use crate::postgres::relation;

/// How many sequences were adopted: their first number is the code of a layout.
const ADOPTED: &str = "
    SELECT pg_catalog.count(*) FROM pg_catalog.pg_sequence
    WHERE seqstart OPERATOR(pg_catalog.>) '-9007199254740992'::pg_catalog.int8
      AND seqstart OPERATOR(pg_catalog.<=) '-4503599627370496'::pg_catalog.int8";

/// Returns None if the database does not have the extension, or if it is older than its view.
pub fn sequences() -> Option<Finding> {
    let own = extension::find(c"flake_sequences")?;
    relation::exists(own.schema, c"flake_sequence_faults").then_some(())?;
    let schema = String::from_utf8(relation::quoted_schema(own.schema)?).ok()?;
    // Functions and views that are bound to PostgreSQL's functions only matter once there is an adopted sequence.
    let query = format!(
        "SELECT f.fault, a.number FROM ({ADOPTED}) a(number) LEFT JOIN {schema}.flake_sequence_faults f
             ON f.kind OPERATOR(pg_catalog.<>) ALL ('{{function,bound}}'::pg_catalog.text[])
             OR a.number OPERATOR(pg_catalog.>) '0'::pg_catalog.int8 ORDER BY f.fault"
    );
    let (mut faults, mut adopted) = (Vec::new(), 0);
    Queries::run(|queries| {
        queries.each::<2>(&CString::new(query).unwrap_or_default(), &[], |&[fault, number]| {
            require();
            adopted = number.map_or(0, |number| number.value());
            faults.extend(fault.map(|_| text(fault)));
        });
    });
    if faults.is_empty() {
        return Some(Finding::fine(format!(
            "Adopted sequences: {adopted}. They are closed, and no search_path misses them."
        )));
    }
    Some(Finding::wrong(described(faults.iter()), "See docs/how-to/adopt.md, and the view flake_sequence_faults."))
}
