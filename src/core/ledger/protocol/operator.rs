//! What operators do: time is given back, or given up.

use std::sync::atomic::{Ordering, fence};

use super::page::{look, raise_page};
use super::time::{Grant, grant};
use super::{in_force, put};
use crate::ledger::host::{Host, Server};
use crate::ledger::record::store;

/// What has come of accepting the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acceptance {
    /// The instant from which IDs can be made.
    pub from: i64,
    /// Whether anything has changed.
    pub is_new: bool,
    /// Up to where horizons had bound this server.
    pub bound: i64,
}

/// Goes on at the present clock although later IDs exist.
pub fn accept<H: Host>(host: &mut H) -> Result<Acceptance, H::Error> {
    let page = look(host)?;
    let (now, is_new, bound) = {
        let writer = host.writer();
        // Until a record is written: after a crash, one that could not be written may take back what was announced since.
        writer.lock(|state| state.file.is_in_doubt = true);
        // Read here, so that nobody announces a later instant while this session waits for the right to write.
        let now = writer.now();
        let Some((ledger, pool)) = writer.lock(in_force) else {
            return Ok(Acceptance { from: now, is_new: false, bound: i64::MIN });
        };
        let (new, new_pool) = (ledger.accepted(now), pool.map(|pool| pool.accepted(now)));
        if new_pool != pool {
            store(&writer, &ledger, new_pool.as_ref(), Some(&page.marks))?;
            writer.lock(|state| state.pool = new_pool);
        }
        if new != ledger {
            store(&writer, &new, new_pool.as_ref(), Some(&page.marks))?;
            put(&writer, new);
            writer.lock(|state| state.opened_at = None);
            // Before anything fails: no generator begins at an instant that was taken back.
            writer.shared().last_seen.fetch_min(now, Ordering::AcqRel);
        }
        (now, new != ledger, ledger.horizons.announced())
    };
    let was_seen = host.shared().last_seen.load(Ordering::Acquire);
    let from = match grant(host, now, now.saturating_add(1), false)? {
        // The window holds the present: sessions go on where they are.
        Grant::Window(..) if !is_new && was_seen > now => {
            host.lock(|state| state.ledger.map_or(now, |ledger| ledger.window.until))
        }
        Grant::Window(..) => host.lock(|state| state.ledger.map_or(now, |ledger| ledger.floor)).max(now),
        Grant::After(until) => {
            raise_page(host, page)?;
            until
        }
    };
    let shared = host.shared();
    host.lock(|state| {
        // Beyond what binds lies only what was announced by a clock that was read before.
        let bound = state
            .ledger
            .map_or(now, |ledger| if ledger.is_open() { ledger.window.until } else { ledger.horizons.bound.instant });
        shared.announced.fetch_min(bound.max(now), Ordering::SeqCst);
    });
    shared.recalls.fetch_add(1, Ordering::SeqCst);
    // An instant that was announced in the window is not taken back.
    let from = from.max(shared.announced.load(Ordering::SeqCst));
    shared.last_seen.fetch_min(from, Ordering::AcqRel);
    Ok(Acceptance { from, is_new, bound })
}

/// Has this server use no tick that starts before an instant, in a transaction that begins from now on. Returns the instant from
/// which IDs are made, and whether anything has changed.
pub fn start_above<H: Host>(host: &mut H, instant: i64) -> Result<(i64, bool), H::Error> {
    let page = look(host)?;
    let (new, is_new) = {
        let writer = host.writer();
        let Some((ledger, pool)) = writer.lock(in_force) else { return Ok((instant, false)) };
        let (new, new_pool) = (ledger.starting_above(instant), pool.map(|pool| pool.starting_above(instant)));
        if (new, new_pool) != (ledger, pool) {
            store(&writer, &new, new_pool.as_ref(), Some(&page.marks))?;
            writer.lock(|state| state.pool = new_pool);
            put(&writer, new);
        }
        (new, new != ledger)
    };
    fence(Ordering::SeqCst);
    raise_page(host, page)?;
    Ok((new.next_free(host.now()).max(instant), is_new))
}
