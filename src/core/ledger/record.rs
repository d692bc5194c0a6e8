//! The file of a server: two halves with a record each, of which the newer valid one counts. Writing one never overwrites the
//! last one that reached the disk, so a write that fails loses nothing.

use super::block::{ExitNote, FilePart, Unreadable};
use super::host::{Durability, Fault, FileState, HALF, Server, Writer};
use super::marks::Marks;
use super::old;
use super::state::Ledger;

/// Returns the newest record of a file, and what is to be known of the file to write the next one.
///
/// # Errors
/// The file is damaged, was cut off, or a later version has written it.
pub fn newest(bytes: &[u8]) -> Result<((Marks, FilePart), FileState), Fault> {
    if old::is_file(bytes) {
        let record = old::file(bytes).ok_or(Fault::File(Unreadable::Damaged))?;
        let state = FileState { number: record.1.number, is_old: true, ..FileState::default() };
        return Ok((record, state));
    }
    if bytes.len() != 2 * HALF {
        return Err(Fault::File(Unreadable::Damaged));
    }
    let mut newest: Option<(usize, (Marks, FilePart))> = None;
    for (half, bytes) in bytes.chunks(HALF).enumerate() {
        match Marks::decode(bytes) {
            Ok((marks, Some(file))) if newest.as_ref().is_none_or(|(_, (_, known))| known.number < file.number) => {
                newest = Some((half, (marks, file)));
            }
            Err(newer @ Unreadable::Newer(_)) => return Err(Fault::File(newer)),
            _ => {}
        }
    }
    let (durable_half, record) = newest.ok_or(Fault::File(Unreadable::Damaged))?;
    let (number, has_exit_note) = (record.1.number, record.1.exit_note.is_some());
    Ok((record, FileState { number, durable_half, has_exit_note, is_old: true }))
}

/// Writes a record of the ledger: the union of what the file says, what the ledger knows, and `others`.
pub fn store<W: Writer>(
    writer: &W,
    ledger: &Ledger,
    others: Option<&Marks>,
    exit_note: Option<ExitNote>,
    durability: Durability,
) -> Result<(), W::Error> {
    let (node, state) = (ledger.me.node, writer.lock(|state| state.file));
    let known = match writer.read()? {
        Some(bytes) => Some(newest(&bytes)?.0.0),
        None => None,
    };
    let exists = known.is_some() && !state.is_old;
    let mut marks = known.unwrap_or_default();
    if let Some(others) = others {
        marks.unite(others, node);
    }
    marks.bound = marks.bound.united(ledger.bound);
    marks.set(ledger.mark());
    let number = state.number + 1;
    let file = FilePart { number, node, wal_timeline: ledger.wal_timeline, waits: ledger.waits(), exit_note };
    let mut bytes = marks.encode(Some(&file));
    bytes.resize(HALF, 0);
    let half = 1 - state.durable_half;
    let is_written = exists && writer.write(half, &bytes, durability)?;
    let durable_half = if is_written {
        if durability == Durability::Flushed { half } else { state.durable_half }
    } else {
        let mut whole = vec![0; 2 * HALF];
        whole[..HALF].copy_from_slice(&bytes);
        writer.replace(&whole)?;
        0
    };
    writer.lock(|state| {
        state.file = FileState { number, durable_half, has_exit_note: exit_note.is_some(), is_old: false };
    });
    Ok(())
}
