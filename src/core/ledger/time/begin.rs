//! The ledger begins in the first session after a start or a promotion.

use super::change::put;
use super::state::{Ledger, in_force};
use crate::ledger::durable::file::newest;
use crate::ledger::durable::record::Reserved;
use crate::ledger::host::{Fault, Host, Server, Timeline, Writer};
use crate::sync::Ordering;
use crate::{Part, Turns};

/// Returns the node's parts that the server's sessions make, one for each generation.
///
/// # Errors
/// The server's errors, if this session has to begin the ledger.
pub fn parts<H: Host>(host: &mut H) -> Result<[Part; 2], H::Error> {
    let ledger = begun(host)?;
    Ok([0, 1].map(|generation| Part::in_turn(ledger.node, ledger.turn(), generation)))
}

/// Counts this session, and begins the ledger if it has not begun.
///
/// # Errors
/// The server's errors; the session is not counted then.
pub fn join<H: Host>(host: &mut H) -> Result<(), H::Error> {
    begun(host)?;
    host.shared().sessions.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Counts this session no longer.
pub fn leave(server: &impl Server) {
    server.shared().sessions.fetch_sub(1, Ordering::Relaxed);
}

/// Returns the ledger. The first session after a start or a promotion begins it.
pub(crate) fn begun<H: Host>(host: &mut H) -> Result<Ledger, H::Error> {
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
pub(super) fn begin_ledger<H: Host>(
    host: &mut H,
    decide: impl FnOnce(&Timeline, &[Turns]) -> Result<Turns, Fault>,
) -> Result<Ledger, H::Error> {
    if let Some(ledger) = host.lock(in_force) {
        return Ok(ledger);
    }
    let (node, timeline, next_xid, page) = (host.node(), host.timeline(), host.next_xid(), host.page()?);
    let of_page = page.record()?.turns;
    let random = host.random();
    let writer = host.writer();
    if let Some(ledger) = writer.lock(in_force) {
        return Ok(ledger);
    }
    let file = match writer.read()? {
        Some(bytes) => Some(newest(&bytes)?),
        None => None,
    };
    let of_file = file.as_ref().map_or(Turns::NONE, |(record, _)| record.turns);
    let turns = decide(&timeline, &[of_file, of_page])?;
    let reserved = file.as_ref().map_or(Reserved::NONE, |(record, _)| record.reserved);
    // Without a file, sessions in other databases may have made IDs in the tick that is running.
    let floor = if file.is_some() { reserved.end() } else { writer.clock().saturating_add(1) };
    debug_assert!(random != 0, "0 is the writer of a page that does not exist");
    debug_assert!(floor >= reserved.end(), "another start may have used all time that the file says");
    let ledger = Ledger { writer: random, node, turns, reserved, floor };
    writer.lock(|state| {
        state.first_xid = next_xid;
        if let Some((_, known)) = file {
            state.file = known;
        }
    });
    put(&writer, ledger);
    Ok(ledger)
}
