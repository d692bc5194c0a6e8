//! The file flake.mark: two halves with a record each. The newer valid record counts. A new record goes to the other half, so a
//! write that fails or is torn leaves the last record intact.

use super::record::{Record, Reserved};
use super::record_format::{SIZE, Unreadable};
use crate::ledger::host::{Fault, Server, Writer};
use crate::ledger::time::state::{FileState, Ledger};

/// The size of each half of the file in bytes: a sector of any disk.
pub const HALF: usize = 4096;
const _: () = assert!(SIZE <= HALF);
/// The size of the file in bytes.
pub const FILE: usize = 2 * HALF;

/// Returns the newest record of a file, and what the next write needs to know of the file.
///
/// # Errors
/// The file is damaged or cut off, or a later version wrote it.
pub fn newest(bytes: &[u8]) -> Result<(Record, FileState), Fault> {
    let mut newest: Option<(Record, FileState)> = None;
    for (half, bytes) in bytes.chunks(HALF).enumerate().filter(|_| bytes.len() == FILE) {
        match Record::decode(bytes) {
            Ok((record, number)) if newest.as_ref().is_none_or(|(_, known)| known.number < number) => {
                newest = Some((record, FileState { number, half, is_old: true, is_in_doubt: false }));
            }
            Err(newer @ Unreadable::Newer(_)) => return Err(Fault::File(newer)),
            _ => {}
        }
    }
    newest.ok_or(Fault::File(Unreadable::Damaged))
}

/// Writes a record: the union of the file and of the ledger. Returns the reserved time that the file has now.
pub fn store<W: Writer>(writer: &W, ledger: &Ledger) -> Result<Reserved, W::Error> {
    let state = writer.lock(|state| state.file);
    let known = match writer.read()? {
        Some(bytes) => Some(newest(&bytes)?.0),
        None => None,
    };
    let exists = known.is_some() && !state.is_old;
    let mut record = known.unwrap_or_default();
    let before = record.reserved;
    record.merge_reserved(&ledger.reserved);
    debug_assert!(record.reserved.contains(&before), "a record loses nothing that the file has");
    (record.writer, record.turns) = (ledger.writer, ledger.turns);
    let number = state.number + 1;
    let mut bytes = record.encode(number);
    let other_half = 1 - state.half;
    let half = if exists && writer.write(other_half, &bytes)? {
        other_half
    } else {
        bytes.resize(FILE, 0);
        writer.replace(&bytes)?;
        0
    };
    writer.lock(|state| state.file = FileState { number, half, ..FileState::default() });
    Ok(record.reserved)
}
