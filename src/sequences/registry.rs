//! Which sequences were adopted, and by which layout: their ranges say it.
//!
//! A dump, a copy of the database, pg_upgrade and a renamed sequence keep the range, and only the owner of a sequence can change it.
//! PostgreSQL's own nextval and setval raise errors: the range holds no number that is left.

use flake_core::{BUILTIN, Layout, code_of_start, sequence_code};
use pgrx::pg_sys::Oid;

use crate::error::Error;
use crate::layouts::{catalog, known};
use crate::postgres::sequence::{self, Parameters};

/// Returns the code of the layout by which a sequence was adopted, if it was.
pub fn code(parameters: &Parameters) -> Option<i64> {
    // If one of the three numbers was changed, the other two tell the code.
    let Parameters { start, min, max, .. } = *parameters;
    code_of_start(if max.wrapping_sub(1) == min { max } else { start })
}

/// Returns the least and the greatest number of an adopted sequence. It starts at the greatest.
pub const fn range(code: i64) -> [i64; 2] {
    [-code - 1, -code]
}

/// Raises an error if somebody has altered an adopted sequence, so that PostgreSQL would find numbers in it.
pub fn require_closed(sequence: Oid, parameters: &Parameters, code: i64) -> Result<(), Error> {
    let [min, max] = range(code);
    if parameters.min == min
        && parameters.max == max
        && parameters.start == max
        && parameters.increment > 0
        && parameters.cache == 1
        && !parameters.cycles
    {
        return Ok(());
    }
    let name = sequence::name(sequence);
    Err(Error::not_ready(format!("sequence \"{name}\" was adopted, and its range has been changed"))
        .detail(
            "Its numbers are IDs, and its range names their layout. With another range, PostgreSQL's nextval() would return small \
             numbers.",
        )
        .hint(format!(
            "Close it again: ALTER SEQUENCE … INCREMENT 1 MINVALUE {min} MAXVALUE {max} START {max} RESTART NO CYCLE CACHE 1, and \
             SELECT pg_catalog.setval('…', {max})."
        )))
}

/// Returns the layout with a code. Of two custom layouts with one code, which chance makes once in 2^52 pairs, the first by its name counts.
pub fn layout(sequence: Oid, code: i64) -> Result<&'static Layout, Error> {
    let of_code = |name: &str| (sequence_code(name) == code).then(|| known(name.as_bytes())).flatten();
    let built_in = BUILTIN.iter().find_map(|layout| of_code(layout.name()));
    built_in.or_else(|| catalog::names().iter().find_map(|name| of_code(name))).ok_or_else(|| {
        Error::invalid(format!("layout of sequence \"{}\" does not exist", sequence::name(sequence)))
            .detail(format!("The range of the sequence stands for code {code}, and no layout of this database has it."))
            .hint("Create the custom layout by which the sequence was adopted, under its old name.")
    })
}
