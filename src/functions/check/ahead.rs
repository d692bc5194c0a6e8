//! The check of greatest keys. Where clients can choose keys, one may have chosen a key of the far future, and consumers that have
//! taken it get no new rows.

use std::ffi::CStr;

use flake_core::Layout;
use pgrx::prelude::*;

use super::finding::{Finding, described};
use super::uses::{Uses, text};
use crate::layouts::known;
use crate::ledger;
use crate::postgres::memory::push;
use crate::postgres::queries::Queries;
use crate::postgres::relation;
use crate::postgres::timestamptz::to_text;
use crate::settings;

/// The name of table $1 and an index that finds the greatest value of its column $2, with operators of family $3, if the caller may
/// read the column and no policy hides rows.
const READABLE: &CStr = c"
    SELECT c.oid::pg_catalog.regclass::pg_catalog.text, i.indexrelid
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_index i ON i.indrelid OPERATOR(pg_catalog.=) c.oid
    WHERE c.oid OPERATOR(pg_catalog.=) $1 AND i.indkey[0] OPERATOR(pg_catalog.=) $2 AND c.relkind OPERATOR(pg_catalog.=) 'r'
      AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace) AND pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE')
      AND pg_catalog.has_column_privilege(c.oid, $2, 'SELECT') AND NOT pg_catalog.row_security_active(c.oid)
      AND i.indisvalid AND i.indpred IS NULL AND EXISTS (
        SELECT FROM pg_catalog.pg_opclass o WHERE o.oid OPERATOR(pg_catalog.=) i.indclass[0]
          AND o.opcfamily OPERATOR(pg_catalog.=) $3)
    LIMIT 1";

/// Looks for keys that are far ahead of the clock, in columns whose default makes IDs.
pub fn greatest(uses: &Uses, now: i64) -> Finding {
    // IDs of servers whose clocks were ahead are not further ahead.
    let furthest =
        now.saturating_add(ledger::status().map_or(0, |status| status.lead)).saturating_add(settings::max_lead());
    let (mut looked_at, mut ahead) = (0, Vec::new());
    Queries::run(|queries| {
        for ((table, number), layout) in uses.made() {
            check_for_interrupts!();
            let Some(layout) = known(layout.as_bytes()) else { continue };
            let Ok(bound) = layout.min_at(furthest) else { continue };
            let arguments = [
                (pg_sys::OIDOID, table.into()),
                (pg_sys::INT2OID, number.into()),
                (pg_sys::OIDOID, relation::integer_family().into()),
            ];
            queries.each::<2>(READABLE, &arguments, |&[name, index]| {
                let index = index.map_or(pg_sys::Oid::INVALID, |index| pg_sys::Oid::from(index.value() as u32));
                let Some(found) = relation::greatest_from(table, index, number, bound as i64) else { return };
                looked_at += 1;
                found.into_iter().for_each(|id| push(&mut ahead, describe(&text(name), id, layout)));
            });
        }
    });
    if ahead.is_empty() {
        return Finding::fine(format!(
            "Columns whose default makes IDs and that this role may look at: {looked_at}. None has a key far ahead of the clock."
        ));
    }
    ahead.sort_unstable();
    Finding::wrong(
        described(ahead.iter()),
        "Consumers that have read it get no new rows, and new IDs are below it. Give the row another key, and keep clients from \
         choosing keys: GRANT INSERT on the other columns only.",
    )
}

fn describe(table: &str, id: i64, layout: &Layout) -> String {
    let at = layout.tick_of(id as u64).map(|tick| to_text(layout.start_of(tick)));
    match at {
        Ok(at) => format!("The greatest key of {table} is {id}, which is of {at}."),
        Err(_) => format!("The greatest key of {table} is {id}, above all IDs of {}.", layout.name()),
    }
}
