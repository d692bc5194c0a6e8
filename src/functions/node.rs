//! Which node an ID belongs to.
#![allow(unsafe_code, reason = "the call site keeps the layout")]

use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::layouts::argument::with_layout;
use crate::layouts::by_name;
use crate::ledger;
use crate::postgres::call::Text;
use crate::postgres::entry_point::entry_point;

entry_point!(flake_node(id: i64, layout: Text<'_>) else flake_node_or_null, |call| {
    ledger::node_in_force().and_then(|node| {
        // SAFETY: `layout` is argument 1, and the function caches nothing else.
        unsafe { with_layout(call, 1, layout, |layout| layout.node_of(id as u64, node).ok().flatten().map(|node| node as i32)) }
    })
});

#[pg_extern(sql = "")]
fn flake_node_or_null(id: i64, layout: &[u8]) -> Option<i32> {
    by_name(layout).node_of(id as u64, ledger::node_to_read().or_raise()).or_raise().map(|node| node as i32)
}
