//! The page with the record of a database: the second page of the sequence flake_mark in this session's database. The WAL carries it
//! to other servers together with the data.

use std::ffi::CStr;

use flake_core::ledger::durable::record::{Record, Reserved};
use flake_core::ledger::host::{Change, Page};

use super::super::memory::{attach, memory};
use super::super::pages::Hint;
use crate::error::Error;
use crate::postgres::extension::INTERNAL_SCHEMA;
use crate::postgres::recovery;
use crate::postgres::sequence_page::{SequencePage, flush};

const SEQUENCE: &CStr = c"flake_mark";
/// The sequence that has a copy of flake_mark's last value.
const COPY: &CStr = c"flake_mark_until";
/// The sequence with the turns of the page, and the sequence that has a copy of its last value.
const TURNS: [&CStr; 2] = [c"flake_turns", c"flake_turns_copy"];
fn find() -> Option<SequencePage> {
    let database = recovery::database();
    let hint = memory().map(|memory| memory.control.pages.of(database));
    let known = hint.map_or(0, |hint| hint.sequence(database));
    let page = SequencePage::open(known, INTERNAL_SCHEMA, SEQUENCE)?;
    let oid = page.oid().to_u32();
    if let Some(hint) = hint.filter(|_| oid != known) {
        hint.note(database, oid);
    }
    Some(page)
}

fn hint() -> Result<&'static Hint, Error> {
    Ok(attach()?.control.pages.of(recovery::database()))
}

fn open() -> Result<SequencePage, Error> {
    let page = find().ok_or_else(missing)?;
    if page.is_logged() {
        return Ok(page);
    }
    Err(Error::not_ready("sequence \"flake_mark\" of extension \"flake\" is not logged")
        .detail("Its changes would not reach standbys, nor survive a crash.")
        .hint("Run ALTER SEQUENCE flake_internal.flake_mark SET LOGGED."))
}

/// Returns the error of a database without the sequence.
pub fn missing() -> Error {
    Error::not_ready("sequence \"flake_mark\" of extension \"flake\" does not exist")
        .detail("flake makes IDs only while this sequence can record the time that they use.")
        .hint("Run ALTER EXTENSION flake UPDATE, or create the extension again.")
}

/// Opens the page's sequence, which waits for sessions that have locked it, and keeps it open until the result is dropped. If there
/// is no page, the caller finds that out when it asks for time.
pub fn hold() -> impl Sized {
    find()
}

/// Reads the page, and waits until what was read is on disk. pg_upgrade does not copy the page; the sequence's last value then
/// stands for it.
pub fn read() -> Result<Page, Error> {
    let page = open()?;
    if let Some((bytes, lsn)) = page.read(&hint()?.buffer) {
        // Another session may have written the page and not flushed the WAL yet.
        if !recovery::is_in_progress() {
            flush(lsn);
        }
        return Ok(Page { bytes: Some(bytes), ..Page::default() });
    }
    Ok(Page { bytes: None, reserved: carried(&page), turns: turns(&page) })
}

/// Returns the reserved time that is known if pg_upgrade has left the page behind: the sequence and its copy, half by half.
fn carried(page: &SequencePage) -> Option<Reserved> {
    let values = page.last_values(COPY).into_iter().flatten();
    values.map(Reserved::from_number).reduce(|one, other| one.merged_with(&other))
}

/// Returns the turns that are known if pg_upgrade has left the page behind. The replication of sequences overwrites the logged sequence.
fn turns(page: &SequencePage) -> Option<i64> {
    TURNS.into_iter().rev().find_map(|name| page.sibling(name)?.last_value())
}

/// Returns the record of this database's page, and whether pg_upgrade would keep it, as far as this server can tell; None if nothing was
/// recorded.
pub fn record() -> Result<Option<(Record, bool)>, Error> {
    let page = open()?;
    let kept = carried(&page);
    let bytes = page.read(&hint()?.buffer).map(|(bytes, _)| bytes);
    if bytes.is_none() && kept.is_none() {
        return Ok(None);
    }
    let (exists, turns) = (bytes.is_some(), turns(&page));
    let record = Page { bytes, reserved: kept, turns }.record()?;
    let is_kept = kept.is_some_and(|kept| kept.number() == record.reserved.number())
        && (!exists || turns.is_none_or(|turns| turns == record.turns.number().max(1)));
    Ok(Some((record, is_kept)))
}

/// Locks the page, calls `change` with its content, applies the change, and waits until it is on disk.
pub fn change<R>(change: impl FnOnce(&Page) -> (Change, R)) -> Result<R, Error> {
    let page = open()?;
    let (reserved, turns) = (carried(&page), turns(&page));
    let mut written = None;
    let (mut lsn, result) = page.change(COPY, |bytes| {
        let (reserved, turns) = if bytes.is_none() { (reserved, turns) } else { (None, None) };
        match change(&Page { bytes, reserved, turns }) {
            (Change::Keep, result) => (None, result),
            (Change::Write(bytes, reserved, turns), result) => {
                // pg_upgrade and replication set the value by setval, which refuses values below 1.
                written = Some(turns.max(1));
                (Some((bytes, reserved.number())), result)
            }
        }
    });
    if let Some(turns) = written {
        lsn = TURNS
            .into_iter()
            .filter_map(|name| page.sibling(name)?.set_last_value(turns))
            .chain([lsn])
            .max()
            .unwrap_or(lsn);
    }
    flush(lsn);
    Ok(result)
}
