//! The functions for superusers: flake_accept_clock makes time below later IDs usable again, flake_start_above makes time unusable, and
//! flake_accept_turn begins a ledger whose turn is not known.

use std::sync::atomic::{Ordering, fence};

use super::page::{raise_page, read_page, record_mark};
use super::time::{Grant, grant};
use super::{begin_ledger, begun, change, in_force};
use crate::Turns;
use crate::instant::BEGINNING;
use crate::ledger::claims;
use crate::ledger::host::{Host, Server};

/// The result of accepting the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acceptance {
    /// From when on IDs can be made.
    pub from: i64,
    /// Whether anything has changed.
    pub is_new: bool,
    /// The highest horizon that bound this server before.
    pub bound: i64,
}

/// Accepts the current clock although later IDs exist.
pub fn accept<H: Host>(host: &mut H) -> Result<Acceptance, H::Error> {
    let page = read_page(host)?;
    let (now, is_new, bound) = {
        let writer = host.writer();
        // The clock is read here, because another session may announce a later instant while this one waits for the writer.
        let now = writer.now();
        let Some(ledger) = writer.lock(in_force) else {
            return Ok(Acceptance { from: now, is_new: false, bound: BEGINNING });
        };
        let new = ledger.accepted(now);
        let is_new = new != ledger;
        if is_new {
            // The file is in doubt until this record is written: if the write fails halfway, a crash may bring the recall back, and
            // with it a lower bound than the horizons announced since.
            writer.lock(|state| state.file.is_in_doubt = true);
            change(&writer, new, &page.marks)?;
            writer.lock(|state| state.opened_at = None);
        }
        (now, is_new, ledger.horizons.announced())
    };
    let from = match grant(host, now, now.saturating_add(1), false)? {
        Grant::Window(_, era) => {
            let time = begun(host)?.time;
            // The window contains the clock, but IDs may have been made in later ticks of it.
            let is_behind = !is_new && claims::latest(host, era).is_some_and(|latest| latest > now);
            if is_behind { time.until() } else { time.floor.max(now) }
        }
        Grant::After(until) => {
            raise_page(host, page)?;
            until
        }
    };
    let shared = host.shared();
    host.lock(|state| {
        // A horizon above the bound can only come from a session that read the clock before it was accepted.
        let bound = state
            .ledger
            .map_or(now, |ledger| ledger.time.window.map_or(ledger.horizons.bound.instant, |open| open.until));
        shared.announced.fetch_min(bound.max(now), Ordering::SeqCst);
    });
    shared.recalls.fetch_add(1, Ordering::SeqCst);
    // Horizons that were announced inside the window stay in force.
    let from = from.max(shared.announced.load(Ordering::SeqCst));
    Ok(Acceptance { from, is_new, bound })
}

/// Raises an instant: transactions that begin from now on use no tick that begins before it, on this server or on another one that
/// gets the data. Returns from when on IDs are made, and whether anything has changed.
pub fn start_above<H: Host>(host: &mut H, instant: i64) -> Result<(i64, bool), H::Error> {
    let page = read_page(host)?;
    let (new, is_new) = {
        let writer = host.writer();
        let Some(ledger) = writer.lock(in_force) else { return Ok((instant, false)) };
        let new = ledger.starting_above(instant);
        // A write that failed before this start may have left a later instant in the file, where a crash can still lose it.
        if new != ledger || writer.lock(|state| state.file.is_old) {
            change(&writer, new, &page.marks)?;
        }
        (new, new != ledger)
    };
    fence(Ordering::SeqCst);
    raise_page(host, page)?;
    Ok((new.time.next_made(host.now()).max(instant), is_new))
}

/// Begins the ledger although the turn of the timeline before this one is not known, with a turn that nothing recorded has. Returns
/// the turn in force.
pub fn accept_turn<H: Host>(host: &mut H) -> Result<u32, H::Error> {
    let ledger = begin_ledger(host, |timeline, recorded| {
        let known = Turns::of(timeline.number, timeline.parents.as_deref(), recorded);
        Ok(known.unwrap_or_else(|| Turns::accepted(timeline.number, recorded)))
    })?;
    record_mark(host)?;
    Ok(ledger.part().turn())
}
