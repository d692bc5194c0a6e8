//! Bounds of partitions by ranges of IDs: whether they are those of times in the layout of the IDs. PostgreSQL keeps the numbers
//! only, so what can be seen is that times of the layout that a call means without naming one are whole seconds.

#![allow(unsafe_code, reason = "reads what queries return")]

use std::collections::BTreeMap;
use std::ffi::CStr;

use flake_core::Layout;
use pgrx::prelude::*;

use super::calls::{Column, DEFAULT};
use crate::layouts::known;
use crate::postgres::node_tree::Tree;
use crate::postgres::queries::{Queries, bytes};

/// The tables that are partitioned by ranges of one column, with its number and the bounds of each partition. PostgreSQL keeps no
/// bound that is longer than a page.
const BOUNDS: &CStr = c"
    SELECT p.partrelid, p.partattrs[0], pg_catalog.convert_to(c.relpartbound::pg_catalog.text, 'SQL_ASCII')
    FROM pg_catalog.pg_partitioned_table p JOIN pg_catalog.pg_inherits i ON i.inhparent OPERATOR(pg_catalog.=) p.partrelid
    JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid
    WHERE p.partstrat OPERATOR(pg_catalog.=) 'r' AND p.partnatts OPERATOR(pg_catalog.=) 1::smallint";

/// The columns whose partitions have bounds of another layout than the one of their IDs.
pub fn wrong(queries: &Queries, made: &BTreeMap<Column, String>) -> Vec<Column> {
    let mut bounds: BTreeMap<Column, Vec<i64>> = BTreeMap::new();
    queries.each::<3>(BOUNDS, &[], |&[table, number, tree]| {
        check_for_interrupts!();
        let (Some(table), Some(number)) = (table, number) else { return };
        let column = (table.value() as u32, number.value() as i16);
        if made.contains_key(&column) {
            // SAFETY: the query returns a column of this type.
            let text = String::from_utf8_lossy(unsafe { bytes(tree) }.unwrap_or_default());
            let tree = Tree::read(&text);
            let bytes = tree.nodes("CONST").filter_map(|place| tree.bytes(place)?.try_into().ok());
            bounds.entry(column).or_default().extend(bytes.map(i64::from_ne_bytes));
        }
    });
    let Some(meant) = known(DEFAULT.as_bytes()) else { return Vec::new() };
    let is_wrong = |(column, ids): &(Column, Vec<i64>)| {
        let of = made.get(column).and_then(|of| known(of.as_bytes()));
        !ids.is_empty()
            && ids.iter().all(|&id| begins_second(meant, id))
            && of.is_some_and(|of| !ids.iter().any(|&id| begins_second(of, id)))
    };
    bounds.into_iter().filter(is_wrong).map(|(column, _)| column).collect()
}

/// Returns whether an ID is the smallest one of a whole second.
fn begins_second(layout: &Layout, id: i64) -> bool {
    let at = layout.tick_of(id as u64).map(|tick| layout.start_of(tick));
    at.is_ok_and(|at| at % 1_000_000 == 0 && layout.min_at(at) == Ok(id as u64))
}
