//! Bounds of partitions by ranges of IDs: whether they are those of times in the layout of the IDs. PostgreSQL keeps the numbers
//! only, so what can be seen is that times of the layout that a call means without naming one are whole seconds.

use std::collections::BTreeMap;

use flake_core::Layout;
use pgrx::prelude::*;
use pgrx::spi::{SpiClient, SpiError};

use super::calls::{Column, DEFAULT};
use crate::layouts::known;
use crate::postgres::node_tree::Tree;

/// The tables that are partitioned by ranges of one column, with its number and the bounds of each partition.
const BOUNDS: &str = "
    SELECT p.partrelid, p.partattrs[0], pg_catalog.convert_to(c.relpartbound::pg_catalog.text, 'SQL_ASCII')
    FROM pg_catalog.pg_partitioned_table p JOIN pg_catalog.pg_inherits i ON i.inhparent OPERATOR(pg_catalog.=) p.partrelid
    JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid
    WHERE p.partstrat OPERATOR(pg_catalog.=) 'r' AND p.partnatts OPERATOR(pg_catalog.=) 1::smallint";

/// The columns whose partitions have bounds of another layout than the one of their IDs.
pub fn wrong(client: &SpiClient<'_>, made: &BTreeMap<Column, String>) -> Result<Vec<Column>, SpiError> {
    let mut bounds: BTreeMap<Column, Vec<i64>> = BTreeMap::new();
    for row in client.select(BOUNDS, None, &[])? {
        check_for_interrupts!();
        let (Some(table), Some(number)) = (row.get::<pg_sys::Oid>(1)?, row.get::<i16>(2)?) else { continue };
        let (column, tree) = ((table.to_u32(), number), row.get::<&[u8]>(3)?.unwrap_or_default());
        if made.contains_key(&column) {
            let text = String::from_utf8_lossy(tree);
            let tree = Tree::read(&text);
            let bytes = tree.nodes("CONST").filter_map(|place| tree.bytes(place)?.try_into().ok());
            bounds.entry(column).or_default().extend(bytes.map(i64::from_ne_bytes));
        }
    }
    let Some(meant) = known(DEFAULT.as_bytes()) else { return Ok(Vec::new()) };
    let is_wrong = |(column, ids): &(Column, Vec<i64>)| {
        let of = made.get(column).and_then(|of| known(of.as_bytes()));
        !ids.is_empty()
            && ids.iter().all(|&id| begins_second(meant, id))
            && of.is_some_and(|of| !ids.iter().any(|&id| begins_second(of, id)))
    };
    Ok(bounds.into_iter().filter(is_wrong).map(|(column, _)| column).collect())
}

/// Returns whether an ID is the smallest one of a whole second.
fn begins_second(layout: &Layout, id: i64) -> bool {
    let at = layout.tick_of(id as u64).map(|tick| layout.start_of(tick));
    at.is_ok_and(|at| at % 1_000_000 == 0 && layout.min_at(at) == Ok(id as u64))
}
