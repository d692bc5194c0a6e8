//! Changes of the ledger: the file has them before memory does, and an era begins after everything else.

use super::shared::Shared;
use super::state::Ledger;
use crate::ledger::durable::file::store;
use crate::ledger::host::{Server, Writer};

/// Writes a ledger into the file, then puts it in force. If the file has an acceptance whose call has failed, that is in force too.
pub(crate) fn change<W: Writer>(writer: &W, new: Ledger) -> Result<(), W::Error> {
    let in_file = store(writer, &new)?;
    debug_assert!(in_file.contains(&new.reserved), "the file must have it before memory does");
    put(writer, new.reserving(&in_file));
    Ok(())
}

/// Puts a ledger in force. If its floor or its generation is another one, an era begins.
pub(super) fn put<W: Writer>(writer: &W, new: Ledger) {
    writer.lock(|state| {
        let shared: &Shared = writer.shared();
        let of_era = |ledger: Ledger| (ledger.reserved.acceptances, ledger.floor);
        let is_same_era = state.ledger.map(of_era) == Some(of_era(new));
        debug_assert!(state.ledger.is_none_or(|old| new.reserved.contains(&old.reserved)), "reserved time only rises");
        debug_assert!(
            state
                .ledger
                .is_none_or(|old| old.reserved.acceptances < new.reserved.acceptances || old.floor <= new.floor),
            "the floor of a generation only rises"
        );
        state.ledger = Some(new);
        if !is_same_era {
            shared.begin_era(new.reserved.generation());
        }
    });
}
