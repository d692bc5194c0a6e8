//! The file flake.mark: two halves with a record each, and the exit note. The newer valid record counts. A new record goes to the
//! other half, so a write that fails or is torn leaves the last record intact.

use super::block::{FilePart, Unreadable, checksum};
use super::host::{FILE, Fault, FileState, HALF, Server, Writer};
use super::marks::Marks;
use super::note::{ExitNote, WITHDRAWN};
use super::state::Ledger;

/// Returns the newest record of a file, and what the next write needs to know of the file.
///
/// # Errors
/// The file is damaged or cut off, or a later version wrote it.
pub fn newest(bytes: &[u8]) -> Result<((Marks, FilePart), FileState), Fault> {
    if bytes.len() != FILE {
        return Err(Fault::File(Unreadable::Damaged));
    }
    let (halves, note) = bytes.split_at(2 * HALF);
    let mut newest: Option<(usize, (Marks, FilePart))> = None;
    for (half, bytes) in halves.chunks(HALF).enumerate() {
        match Marks::decode(bytes) {
            Ok((marks, Some(file))) if newest.as_ref().is_none_or(|(_, (_, known))| known.number < file.number) => {
                newest = Some((half, (marks, file)));
            }
            Err(newer @ Unreadable::Newer(_)) => return Err(Fault::File(newer)),
            _ => {}
        }
    }
    let (half, (marks, mut file)) = newest.ok_or(Fault::File(Unreadable::Damaged))?;
    let checksum = checksum(&bytes[half * HALF..]);
    file.exit_note = ExitNote::decode(note, checksum);
    let (number, has_exit_note) = (file.number, file.exit_note.is_some());
    Ok(((marks, file), FileState { number, checksum, half, has_exit_note, is_old: true, is_in_doubt: false }))
}

/// Writes a record without an exit note: the union of the file's marks, the ledger, and `others`, which the ledger must have read
/// before.
pub fn store<W: Writer>(writer: &W, ledger: &Ledger, others: &Marks) -> Result<(), W::Error> {
    let (part, state) = (ledger.me.part, writer.lock(|state| state.file));
    let known = match writer.read()? {
        Some(bytes) => Some(newest(&bytes)?.0.0),
        None => None,
    };
    let exists = known.is_some() && !state.is_old;
    let mut marks = known.unwrap_or_default();
    // The file may have the bound of an acceptance whose write failed. The ledger never accepted that, so the ledger's bound
    // counts.
    marks.bound = ledger.horizons.bound;
    marks.above = marks.above.max(ledger.time.above);
    marks.unite(others, part);
    marks.set(ledger.mark());
    marks.turns = ledger.turns;
    let number = state.number + 1;
    let file = FilePart { number, part, exit_note: None };
    let mut bytes = marks.encode(Some(&file));
    bytes.resize(HALF, 0);
    let checksum = checksum(&bytes);
    let other_half = 1 - state.half;
    let half = if exists && writer.write(other_half, &bytes)? {
        other_half
    } else {
        bytes.resize(FILE, 0);
        writer.replace(&bytes)?;
        0
    };
    writer.lock(|state| state.file = FileState { number, checksum, half, ..FileState::default() });
    Ok(())
}

/// Writes a note for the last record, or erases it. A note of an earlier start does not belong to a record of this one.
pub fn note<W: Writer>(writer: &W, note: Option<ExitNote>) -> Result<(), W::Error> {
    let file = writer.lock(|state| state.file);
    if file.is_old || note.is_none() && !file.has_exit_note {
        return Ok(());
    }
    // A failed write may still have reached the file.
    writer.lock(|state| state.file.has_exit_note = true);
    writer.note(&note.map_or(WITHDRAWN, |note| note.encode(file.checksum)))?;
    writer.lock(|state| state.file.has_exit_note = note.is_some());
    Ok(())
}
