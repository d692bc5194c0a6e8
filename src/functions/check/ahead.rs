//! The check of greatest keys. Where clients can choose keys, one may have chosen a key of the far future, and consumers that have
//! taken it get no new rows.

use std::ffi::CStr;

use flake_core::Layout;
use pgrx::prelude::*;

use super::finding::{Finding, described};
use super::uses::{Uses, text};
use crate::layouts::known;
use crate::ledger::Status;
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

/// The instant up to which IDs can lead the clock, also on servers whose clocks were ahead.
pub fn furthest(status: Option<&Status>, now: i64) -> i64 {
    now.saturating_add(status.map_or(0, |status| status.lead)).saturating_add(settings::max_lead())
}

/// Calls `look` with the greatest keys of each table whose default makes IDs and that the caller may read, at most so many of the IDs
/// from the tick of an instant on. Returns how many tables there were.
pub fn each_table(uses: &Uses, from: i64, most: usize, mut look: impl FnMut(&str, &'static Layout, &[i64])) -> usize {
    let mut looked_at = 0;
    Queries::run(|queries| {
        for ((table, number), layout) in uses.made() {
            check_for_interrupts!();
            let Some(layout) = known(layout.as_bytes()) else { continue };
            let Ok(bound) = layout.min_at(from.max(layout.epoch())) else { continue };
            let arguments = [
                (pg_sys::OIDOID, table.into()),
                (pg_sys::INT2OID, number.into()),
                (pg_sys::OIDOID, relation::integer_family().into()),
            ];
            queries.each::<2>(READABLE, &arguments, |&[name, index]| {
                let index = index.map_or(pg_sys::Oid::INVALID, |index| pg_sys::Oid::from(index.value() as u32));
                let Some(keys) = relation::greatest_values(table, index, number, bound as i64, most) else { return };
                looked_at += 1;
                look(&text(name), layout, &keys);
            });
        }
    });
    looked_at
}

/// Looks for keys that are far ahead of the clock, in columns whose default makes IDs.
pub fn greatest(uses: &Uses, status: Option<&Status>, now: i64) -> Finding {
    let mut ahead = Vec::new();
    let looked_at = each_table(uses, furthest(status, now), 1, |table, layout, keys| {
        keys.iter().for_each(|&id| push(&mut ahead, describe(table, id, layout)));
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
