//! How a session joins the ledger before its first generator begins, and leaves it at exit.

use flake_core::FinalProgress;
use flake_core::ledger::protocol;

use super::backend::Backend;
use super::transactions;
use crate::error::Error;

/// Counts this session as a user of the ledger, unless it is counted already.
pub fn join() -> Result<Backend, Error> {
    if let Some(backend) = transactions::own() {
        return Ok(backend);
    }
    let mut backend = Backend::with_slot()?;
    protocol::join(&mut backend)?;
    transactions::take_part(backend);
    Ok(backend)
}

/// Stores the progress of this session's snos for later sessions, at exit, while this session still owns its slot. `progress` is
/// None if the session exits in the middle of making a sno.
pub fn leave(progress: Option<&[FinalProgress]>) {
    if let Some(mut backend) = transactions::own() {
        protocol::leave(&mut backend, progress);
    }
}
