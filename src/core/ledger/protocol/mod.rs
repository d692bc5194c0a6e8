//! The protocol: in which order a session reads, decides and writes, so that no ID is made twice.
//!
//! 1. Time is in the file, then in the page of the session's database, before anybody makes an ID in it.
//! 2. A page's content is taken in before it is written, and is in the file before the page is written in this start's name.
//! 3. A session that writes the file or a page writes the union of what is there and what it knows.

mod horizons;
mod lease;
mod operator;
mod page;
mod sessions;
mod time;

use std::sync::atomic::Ordering;

use super::host::{Host, Server, State, Writer};
use super::pool::Pool;
use super::record::newest;
use super::state::{Facts, Ledger};

pub use self::horizons::bind;
pub use self::lease::lease;
pub use self::operator::{Acceptance, accept, start_above};
pub use self::page::{marks_of, record_mark};
pub use self::sessions::{join, leave};
pub use self::time::{Beginning, Grant, begin, grant, wait_of_start};

/// Has the ledger begun, after a start or a promotion, and returns it.
fn begun<H: Host>(host: &mut H) -> Result<Ledger, H::Error> {
    if let Some(ledger) = host.lock(|state| state.ledger) {
        return Ok(ledger);
    }
    let (node, wal_timeline, next_xid) = (host.node(), host.wal_timeline(), host.next_xid());
    let ledger = {
        let writer = host.writer();
        if let Some(ledger) = writer.lock(|state| state.ledger) {
            return Ok(ledger);
        }
        let file = match writer.read()? {
            Some(bytes) => Some(newest(&bytes)?),
            None => None,
        };
        let now = writer.now();
        let started_at = writer.lock(|state| state.started_at);
        let ledger = Ledger::begin(&Facts {
            now,
            steady: writer.steady(),
            started_at,
            node: node.into(),
            wal_timeline,
            boot: writer.boot(),
            chance: (writer.chance(), writer.chance()),
            file: file.as_ref().map(|(record, _)| record),
        });
        writer.lock(|state| {
            state.first_xid = next_xid;
            if let Some((_, known)) = file {
                state.file = known;
            }
        });
        put(&writer, ledger);
        ledger
    };
    Ok(ledger)
}

/// What is in force: the ledger, once it has begun, and the pool.
fn in_force(state: &mut State) -> Option<(Ledger, Option<Pool>)> {
    state.ledger.map(|ledger| (ledger, state.pool))
}

/// Puts a ledger in force, whose content is in the file.
fn put(writer: &impl Writer, new: Ledger) {
    let now = writer.now();
    writer.lock(|state| {
        let is_same_era = state.ledger.is_some_and(|old| old.era == new.era);
        if !is_same_era {
            state.free_from = None;
        }
        if !new.is_open() {
            let opens_at = new.opens_at(now, writer.steady());
            state.opened_at = state.opened_at.max(Some(opens_at).filter(|&opens_at| opens_at < i64::MAX));
        }
        let shared = writer.shared();
        let is_recalled = state.ledger.is_some_and(|old| old.horizons.bound.recalls < new.horizons.bound.recalls);
        // Before the ledger is in force: who sees the recall sees the lower instant.
        if is_recalled {
            shared.announced.store(new.horizons.announced().max(new.horizons.bound.instant), Ordering::SeqCst);
        } else {
            shared.announced.fetch_max(new.horizons.announced(), Ordering::SeqCst);
        }
        state.ledger = Some(new);
        shared.window.write(new.window, new.era);
    });
}
