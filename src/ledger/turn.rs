//! The timeline of this server's WAL, and its turn: which part of its node's IDs its sessions make.

use flake_core::ledger::durable::file::newest;
use flake_core::ledger::host::Timeline;
use flake_core::ledger::time::begin::turns;
use flake_core::{Turn, Turns, turn};

use super::mark::{file, page};
use super::memory::memory;
use crate::error::Error;
use crate::postgres::recovery;

/// Returns the timeline of the WAL. The timelines before it are not known if the file that lists them is missing or cannot be read, such
/// as after `pg_resetwal`.
pub fn timeline() -> Timeline {
    let number = recovery::wal_timeline();
    // The first timeline has no file.
    let parents = if number <= 1 {
        Some(Vec::new())
    } else {
        recovery::timeline_history(number).and_then(|file| turn::parents(&file, number))
    };
    Timeline { number, parents }
}

/// Returns the turn of this server's timeline, and whether it is in force. Returns None on a standby, which has none before its
/// promotion. The error says why it is not known.
pub fn turn() -> Option<Result<(Turn, bool), Error>> {
    if recovery::is_in_progress() {
        return None;
    }
    let in_force =
        memory().and_then(|memory| memory.control.with_state(|state| state.ledger)).map(|ledger| ledger.turns);
    let of_record = || Ok(turns(&timeline(), &recorded()?)?);
    let known = in_force.map_or_else(of_record, Ok);
    known.map(|turns| turns.last.map(|turn| (turn, in_force.is_some()))).transpose()
}

/// Returns whether the turn of this server's timeline is not known.
pub fn is_unknown() -> Result<bool, Error> {
    Ok(turns(&timeline(), &recorded()?).is_err())
}

/// Returns what the file and the page say.
fn recorded() -> Result<[Turns; 2], Error> {
    let of_file = file::read()?.map(|bytes| newest(&bytes)).transpose()?.map(|(record, _)| record.turns);
    let of_page = page::read()?.record()?.turns;
    Ok([of_file.unwrap_or_default(), of_page])
}
