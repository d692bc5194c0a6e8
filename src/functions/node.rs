//! Which node an ID belongs to.
#![allow(unsafe_code, reason = "the call site keeps the layout")]

use crate::error::OrRaise;
use crate::layouts::argument::with_layout;
use crate::ledger;
use crate::postgres::call::Text;
use crate::postgres::entry_point::entry_point;
use crate::postgres::guard::guarded;

entry_point!(flake_node(id: i64, layout: Text<'_>), |call| {
    // SAFETY: `layout` is argument 1, and the function caches nothing else. Nothing must be dropped.
    let node = unsafe {
        let node = ledger::node_in_force().unwrap_or_else(|| guarded(|| ledger::node_to_read().or_raise()));
        with_layout(call, 1, layout, |layout| layout.node_of(id as u64, node))
    };
    call.or_null(node.map(|node| node as i32))
});
