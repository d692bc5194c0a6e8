//! How many IDs a session can make.

use flake_core::Share;
use pgrx::AnyNumeric;
use pgrx::prelude::*;

use crate::clock;
use crate::layouts::by_name;
use crate::ledger;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::slot;

#[pg_extern(sql = "")]
fn flake_session_ids_per_second(layout: &[u8]) -> Option<AnyNumeric> {
    let layout = by_name(layout);
    let share = Share::new(layout, ledger::node_to_read().ok()?, slot::slot().ok()?).ok()?;
    let is_its_time = layout.ticks().tick_to_generate_in(clock::now(), layout.name()).is_ok();
    (layout.generates && is_its_time).then(|| AnyNumeric::from(share.ids_per_second(layout.tick_length())))
}

c_symbol!(flake_session_ids_per_second);
