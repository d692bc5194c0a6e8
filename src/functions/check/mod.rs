//! flake_check: shows the state of a server before and after a change. It changes nothing, and every role may call it.

mod ahead;
pub mod finding;
mod keys;
mod layouts;
mod memory;
mod node;
mod sequences;
mod shared_number;
mod uses;

use pgrx::prelude::*;

use self::finding::Finding;
use self::layouts::Layouts;
use self::memory::{lead, library, upgrade};
use self::node::{fault, node_number, node_settings, turn};
use self::uses::Uses;
use crate::postgres::entry_point::c_symbol;
use crate::settings;
use crate::{clock, ledger};

#[pg_extern(sql = "")]
#[allow(clippy::type_complexity, reason = "the columns of a row")]
fn flake_check() -> TableIterator<
    'static,
    (name!(check, &'static str), name!(ok, Option<bool>), name!(detail, String), name!(hint, Option<String>)),
> {
    let status = ledger::status();
    let in_force = status.as_ref().and_then(|status| status.node).map(|node| (node.id(), node.count()));
    let configured = settings::node();
    let uses = Uses::of_this_database();
    let layouts = Layouts::of_this_database(&uses);
    let unknown =
        || Finding::unknown("This session has no access to the shared memory of flake; see the check \"library\".");
    let findings = [
        ("node number", node_number(in_force.or(configured.filter(|pair| fault(*pair).is_none())))),
        ("settings", status.as_ref().map_or_else(unknown, |_| node_settings(in_force, configured))),
        ("rates", uses.known(layouts.rates(in_force, configured, status.as_ref().map(|status| status.lanes)))),
        ("end of layouts", uses.known(layouts.ends(clock::now()))),
        ("layouts", uses.columns()),
        ("greatest keys", ahead::greatest(&uses, status.as_ref(), clock::now())),
        (
            "shared number",
            status.as_ref().map_or_else(unknown, |status| shared_number::find(&uses, status, clock::now())),
        ),
        ("lead", status.as_ref().map_or_else(unknown, |status| lead(status, clock::now()))),
        ("pg_upgrade", status.as_ref().map_or_else(unknown, |_| upgrade())),
        ("library", library()),
        ("keys", keys::secrets(&uses.keys)),
        ("turn", status.as_ref().map_or_else(unknown, |_| turn())),
    ];
    let findings = findings.into_iter().chain(sequences::sequences().map(|finding| ("sequences", finding)));
    TableIterator::new(findings.map(|(check, Finding { ok, detail, hint })| (check, ok, detail, hint)))
}

c_symbol!(flake_check);
