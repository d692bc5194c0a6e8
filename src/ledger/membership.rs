//! Sessions join the ledger before they have generators, and leave their progress when they exit.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use flake_core::FinalProgress;
use flake_core::ledger::protocol;

use super::attach::attached;
use super::backend::Backend;
use super::{foreign, transactions};
use crate::error::Error;

thread_local! {
    static JOINED: Cell<Option<Backend>> = const { Cell::new(None) };
}

/// Has this session count as one that uses the ledger, once, and returns it.
pub fn join() -> Result<Backend, Error> {
    if let Some(backend) = JOINED.get() {
        return Ok(backend);
    }
    let mut backend = Backend::with_slot()?;
    match attached().and_then(|attachment| attachment.foreign) {
        Some(header) => foreign::join(&backend, header),
        None => protocol::join(&mut backend)?,
    }
    transactions::take_part(&backend);
    JOINED.set(Some(backend));
    Ok(backend)
}

/// Leaves the progress of this session's generators to later sessions, at exit, while the slot still belongs to this session.
/// `progress` is none when the session exits in the middle of making an ID.
pub fn leave(progress: Option<&[FinalProgress]>) {
    let Some(mut backend) = JOINED.get() else { return };
    match attached().and_then(|attachment| attachment.foreign) {
        Some(header) => foreign::leave(&backend, header, progress),
        None => {
            // Sessions of other versions take no part in the count, nor in the ledger.
            let are_all_counted = backend.control().header.foreign_sessions.load(Ordering::Acquire) == 0;
            protocol::leave(&mut backend, progress, are_all_counted);
        }
    }
}
