//! The protocol: in which order a session reads, decides and writes, so that no ID is made twice.
//!
//! The problem: the words of lanes keep the sessions of a running server apart. Crashes, copies, promotions and clocks that step
//! back happen in between, and each place that stores used time can be lost or outdated. These rules keep the sessions before and
//! after apart:
//!
//! 1. Time is granted in the file, then in the page of the session's database, before a session makes an ID in it. By then the WAL
//!    is flushed up to the page's record, so a server that has replayed the commit of an ID has replayed a mark above the ID.
//! 2. A page is read before it is written, and the file contains the page's marks before this start writes the page. A session
//!    reads the page when a generator begins and whenever it asks for time. It cannot rely on an earlier reading, because databases
//!    are dropped, and new ones can get the same OID and file number.
//! 3. A session that writes the file or a page writes the union of what is stored there and what it knows. If the list of marks is
//!    full, the lowest ones are folded into one that counts for every part. If the list of gaps is full, a gap counts as used.
//! 4. A server counts its own part's mark, whoever wrote it, the folded mark, and marks made under another number of parts, because
//!    their workers may overlap with its own.
//! 5. An old primary may still run after a promotion. So the ledger has a [part](crate::Part) of the node's IDs, which it fixes when it
//!    begins, by the [turn](crate::turn) of the WAL's timeline. It does not begin if the turn is not known.
//! 6. A window ends where used time begins, and the next window begins a new era after it. A window also ends if a session later
//!    finds in a page that its time is used. Each era has words of its own, which are reset before it is published. A session uses
//!    no tick that begins before its era's floor. After it has taken IDs from a lane, it checks that the era is still the same, or
//!    drops them. flake_start_above must know that no session makes IDs of an ended era, so it waits for the transactions that
//!    passed that check before, and raises an error if they do not end.
//! 7. A record never overwrites the last one that reached the disk: [`record`](super::record) writes two halves in turn.
//! 8. A session stores how far its snos got while it still owns the slot, and the next owner starts in a later tick. A session
//!    that exits in the middle of making a sno gives up all time that was granted to its slot.
//! 9. The last session to exit leaves an exit note: time after the beginning of the latest tick in the words is free. The note is
//!    not flushed, and counts only until the operating system restarts. It gives back only time that its own start was granted, so
//!    an old file never gives back time that it does not know of.
//! 10. flake_accept_clock accepts gaps. flake_start_above raises an instant that belongs to the data: it binds every server that
//!     has the data, whatever its part. Neither of them lowers used time.
//! 11. A session acquires locks on objects of the database, such as the extension, before it begins a generator. So if the session
//!     is terminated while it waits for such a lock, no time is lost.
//! 12. A session that rolls back, in whole or to a savepoint, looks at the page before its next ID, because the transaction may have
//!     created the page.

mod horizons;
mod operator;
mod page;
mod sessions;
mod time;

use std::sync::atomic::Ordering;

use super::claims;
use super::host::{Fault, Host, Server, State, Timeline, Writer};
use super::marks::Marks;
use super::record::{newest, store};
use super::state::{Facts, Ledger};
use super::window::Window;
use crate::instant::NEVER;
use crate::{Part, Turns};

pub use self::horizons::bind;
pub use self::operator::{Acceptance, accept, accept_turn, start_above};
pub use self::page::{confirm, marks_of, record_mark, unused};
pub use self::sessions::{join, leave};
pub use self::time::{Beginning, Grant, begin, grant, wait_of_start};

/// Returns the part of the node's IDs that the server's sessions make.
///
/// # Errors
/// The server's errors, if this session has to begin the ledger.
pub fn part<H: Host>(host: &mut H) -> Result<Part, H::Error> {
    Ok(begun(host)?.part())
}

/// Returns the ledger. The first session after a start or a promotion begins it.
fn begun<H: Host>(host: &mut H) -> Result<Ledger, H::Error> {
    begin_ledger(host, turns)
}

/// Returns the turns of a timeline, by what is recorded and by its history.
///
/// # Errors
/// [`Fault::Turn`] if they are not known.
pub fn turns(timeline: &Timeline, recorded: &[Turns]) -> Result<Turns, Fault> {
    Turns::of(timeline.number, timeline.parents.as_deref(), recorded).ok_or(Fault::Turn(timeline.number))
}

/// Begins the ledger unless it has begun, with the turns that `decide` returns for what is recorded. Returns the ledger.
fn begin_ledger<H: Host>(
    host: &mut H,
    decide: impl FnOnce(&Timeline, &[Turns]) -> Result<Turns, Fault>,
) -> Result<Ledger, H::Error> {
    if let Some(ledger) = host.lock(|state| state.ledger) {
        return Ok(ledger);
    }
    let (node, timeline, next_xid, page) = (host.node(), host.timeline(), host.next_xid(), host.page()?);
    let of_page = marks_of(&page)?.turns;
    let writer = host.writer();
    if let Some(ledger) = writer.lock(|state| state.ledger) {
        return Ok(ledger);
    }
    let file = match writer.read()? {
        Some(bytes) => Some(newest(&bytes)?),
        None => None,
    };
    let of_file = file.as_ref().map_or(Turns::NONE, |((marks, _), _)| marks.turns);
    let turns = decide(&timeline, &[of_file, of_page])?;
    let now = writer.now();
    let started_at = writer.lock(|state| state.started_at);
    let ledger = Ledger::begin(&Facts {
        now,
        started_at,
        node,
        turns,
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
    Ok(ledger)
}

/// Returns the ledger, if it has begun.
const fn in_force(state: &mut State) -> Option<Ledger> {
    state.ledger
}

/// Writes a ledger into the file and puts it in force. The file must contain a fact before any session acts on it, because the next
/// start needs it too. The ledger must have read the page.
fn change<W: Writer>(writer: &W, new: Ledger, page: &Marks) -> Result<(), W::Error> {
    store(writer, &new, page)?;
    put(writer, new);
    Ok(())
}

/// Puts a ledger in force. The file contains it already.
fn put(writer: &impl Writer, new: Ledger) {
    let now = writer.now();
    writer.lock(|state| {
        let is_same_era = state.ledger.is_some_and(|old| old.time.era == new.time.era);
        if !is_same_era {
            state.free_from = None;
            claims::reset(&**writer, new.time.era);
        }
        // A page can tell of horizons after a window was opened.
        let announced = new.horizons.announced();
        let opens_at = if new.time.window.is_some() { announced } else { new.time.next_free(now).max(announced) };
        state.opened_at = state.opened_at.max(Some(opens_at).filter(|&opens_at| opens_at < NEVER));
        let shared = writer.shared();
        let is_recalled = state.ledger.is_some_and(|old| old.horizons.bound.recalls < new.horizons.bound.recalls);
        // The ledger is replaced after this, so a session that knows of the recall also sees the lower instant.
        if is_recalled {
            shared.announced.store(new.horizons.announced().max(new.horizons.bound.instant), Ordering::SeqCst);
        } else {
            shared.announced.fetch_max(new.horizons.announced(), Ordering::SeqCst);
        }
        state.ledger = Some(new);
        shared.window.write(new.time.window.unwrap_or(Window::NONE), new.time.era);
    });
}
