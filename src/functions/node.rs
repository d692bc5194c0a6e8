//! Which node an ID belongs to.

use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::layouts::by_name;
use crate::ledger;
use crate::postgres::entry_point::c_symbol;

#[pg_extern(sql = "")]
fn flake_node(id: i64, layout: &[u8]) -> Option<i64> {
    let layout = by_name(layout);
    layout.node_of(id as u64, ledger::node_to_read().or_raise()).or_raise().map(i64::from)
}

c_symbol!(flake_node);
