//! The protocol: in which order a session reads, decides and writes, so that no ID is made twice.
//!
//! A slot has one owner after another, and all of them have the same share. So no two owners may use the same instant, whatever a
//! crash, a copy, a promotion or a clock does in between, and although each place that keeps used time can be lost or old.
//!
//! 1. Time is in the file, then in the page of the session's database, before a session makes an ID in it. The WAL is on disk up to
//!    the page by then, so a server that has replayed an ID's commit has replayed a mark above it.
//! 2. A page's content is taken in before it is written, and is in the file before the page is written in this start's name. A
//!    session reads the page when a generator begins and whenever it asks for time. A remembered page would not do, because
//!    databases are dropped and files are made anew under the same numbers.
//! 3. A session that writes the file or a page writes the union of what is there and what it knows. A list without room merges its
//!    lowest marks into one that counts for every node; a gap without room counts as used.
//! 4. A server counts its own node's mark, the merged mark, and marks made under another number of nodes, because their workers
//!    may be its own. A mark of another incarnation counts with 2 seconds more, because its last IDs may not have arrived. Only
//!    readers add these 2 seconds, so several promotions cost what one costs.
//! 5. An old primary may still run after a promotion: [`lookout`](super::lookout) waits for it.
//! 6. A window that meets used time ends there, and the next one begins a new era after it. So does a window whose time a page has
//!    used, as a session finds out later. A session checks the era after its ID was admitted. `flake_start_above` has to know that
//!    an era is over, so it waits for the transactions that were admitted before.
//! 7. A record never overwrites the last one that reached the disk: [`record`](super::record) writes two halves in turn.
//! 8. A session stores its progress while it still owns the slot. The next owner resumes from it if the era is the same. A
//!    session that exits in the middle of making an ID gives up all time that was granted to its slot.
//! 9. The last session to exit leaves an exit note, which is not flushed and counts only for the same run of the operating system.
//!    It gives back only what its own start was granted, so that an old file gives nothing back that it does not know.
//! 10. `flake_accept_clock` adds gaps. `flake_start_above` raises an instant that belongs to the data, so it binds every server that
//!     has the data, whatever its number, without the 2 seconds. Neither lowers anything.
//! 11. A session waits for locks of the database's own, such as those on the extension, before a generator is in use, so a session
//!     that is terminated there loses no time.

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
