//! The check of other servers with this server's number. They make the same IDs sooner or later.

use flake_core::Layout;

use super::ahead::{each_table, furthest};
use super::finding::{Finding, described};
use super::uses::Uses;
use crate::ledger::{Status, own_ids};
use crate::postgres::memory::push;
use crate::postgres::timestamptz::to_text;

/// How many keys of a table are looked at, the greatest first.
const MAX_KEYS: usize = 1000;

/// Looks for keys that another server with this server's number has made.
pub fn find(uses: &Uses, status: &Status, now: i64) -> Finding {
    let Some(ledger) = status.ledger else { return Finding::fine("This server has made no ID since its start.") };
    let latest = furthest(Some(status), now);
    let mut others = Vec::new();
    let looked_at = each_table(uses, ledger.floor, MAX_KEYS, |table, layout, keys| {
        // The keys are known, so their IDs were taken before this reading.
        let Some(own) = own_ids(layout) else { return };
        // Keys further ahead were chosen by clients.
        let is_near = |id: u64| layout.tick_of(id).is_ok_and(|tick| layout.start_of(tick) <= latest);
        if let Some(&id) = keys.iter().find(|&&id| is_near(id as u64) && own.has_not_made(id as u64)) {
            push(&mut others, describe(table, id, layout));
        }
    });
    if others.is_empty() {
        return Finding::fine(format!(
            "Columns whose default makes IDs and that this role may look at: {looked_at}. None has a key of this server's number \
             that this server has not made."
        ));
    }
    others.sort_unstable();
    Finding::wrong(
        described(others.iter()),
        "Another server has the same number, and the two will make equal IDs: set another flake.node_id on one of them. If the \
         rows are a copy, or their IDs were made by hand, call flake_start_above() with the greatest key.",
    )
}

fn describe(table: &str, id: i64, layout: &Layout) -> String {
    let at = layout.tick_of(id as u64).map_or(String::new(), |tick| format!(" of {}", to_text(layout.start_of(tick))));
    format!("Key {id}{at} in {table} has this server's number, and this server has not made it.")
}
