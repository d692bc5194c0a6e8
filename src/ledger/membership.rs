//! How a session joins the ledger before its first generator begins, and leaves it at exit.

use std::sync::atomic::Ordering;

use flake_core::FinalProgress;
use flake_core::ledger::host::Server;
use flake_core::ledger::protocol;

use super::attach::attached;
use super::backend::Backend;
use super::control::Header;
use super::transactions;
use crate::clock;
use crate::error::Error;

/// Counts this session as a user of the ledger, unless it is counted already.
pub fn join() -> Result<Backend, Error> {
    if let Some(backend) = transactions::own() {
        return Ok(backend);
    }
    let mut backend = Backend::with_slot()?;
    match attached().and_then(|attachment| attachment.other_version) {
        Some(header) => begin_beside(&backend, header),
        None => protocol::join(&mut backend)?,
    }
    transactions::take_part(backend);
    Ok(backend)
}

/// Stores the progress of this session's generators for later sessions, at exit, while this session still owns its slot. `progress`
/// is None if the session exits in the middle of making an ID.
pub fn leave(progress: Option<&[FinalProgress]>) {
    let Some(mut backend) = transactions::own() else { return };
    match attached().and_then(|attachment| attachment.other_version) {
        Some(header) => leave_beside(&backend, header, progress),
        None => {
            // Sessions of other versions are not counted, and the ledger does not know of their IDs.
            let are_all_counted = backend.control().header.others_sessions.load(Ordering::Acquire) == 0;
            protocol::leave(&mut backend, progress, are_all_counted);
        }
    }
}

/// Begins beside another version's ledger: above the current instant, and above all that such sessions have used.
fn begin_beside(backend: &Backend, header: &Header) {
    header.others_sessions.fetch_add(1, Ordering::AcqRel);
    let floor = header.others_floor.load(Ordering::Acquire).max(clock::now());
    backend.lock(|state| state.started_at = Some(floor));
}

/// Records in the header up to where this session has used time.
fn leave_beside(backend: &Backend, header: &Header, progress: Option<&[FinalProgress]>) {
    let granted = backend.lock(|state| state.ledger.map_or(i64::MIN, |ledger| ledger.window.until));
    let used_before = match progress {
        Some(all) => all.iter().map(|last| last.progress.free_from()).max().unwrap_or(i64::MIN),
        None => granted.max(clock::now()),
    };
    header.others_floor.fetch_max(used_before, Ordering::AcqRel);
}
