//! The page with the marks of all nodes: the second page of the sequence flake_mark in this session's database. WAL carries it to
//! other servers together with the data.

use std::cell::Cell;
use std::ffi::CStr;

use flake_core::ledger::host::{Change, Page};
use flake_core::ledger::protocol::marks_of;

use super::super::memory::{attach, memory};
use super::super::pages::Hint;
use crate::clock;
use crate::error::Error;
use crate::postgres::extension::INTERNAL_SCHEMA;
use crate::postgres::sequence_page::{SequencePage, flush};
use crate::postgres::timestamptz::to_text;
use crate::postgres::{recovery, report};

const SEQUENCE: &CStr = c"flake_mark";
/// The sequence that has a copy of flake_mark's last value.
const COPY: &CStr = c"flake_mark_until";
/// The sequence with the turns of the page, and the sequence that has a copy of its last value.
const TURNS: [&CStr; 2] = [c"flake_turns", c"flake_turns_copy"];
/// How far ahead of the clock a sequence's last value can be a mark, in microseconds. A later value was set by somebody.
const MAX_LAST_VALUE_AHEAD: i64 = 3_600_000_000;

thread_local! {
    /// Whether this session has warned that it ignores the last value.
    static HAS_WARNED: Cell<bool> = const { Cell::new(false) };
}

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
        return Ok(Page { bytes: Some(bytes), last_value: None, turns: None });
    }
    for ignored in page.last_values(COPY).into_iter().flatten().filter(|&value| !is_sane(value)) {
        if !HAS_WARNED.replace(true) {
            report::warning(
                "the last value of sequence \"flake_mark\" is ignored".to_owned(),
                Some(&format!("It stands for {}, more than an hour ahead of the clock.", to_text(ignored))),
                "Only flake should set this sequence. If IDs of that time exist, call flake_start_above with the greatest.",
            );
        }
    }
    Ok(Page { bytes: None, last_value: last_value(&page), turns: turns(&page) })
}

/// Returns the instant that is known if pg_upgrade has left the page behind.
fn last_value(page: &SequencePage) -> Option<i64> {
    page.last_values(COPY).into_iter().flatten().filter(|&value| is_sane(value)).max()
}

/// Returns the turns that are known if pg_upgrade has left the page behind. The replication of sequences overwrites the logged sequence.
fn turns(page: &SequencePage) -> Option<i64> {
    TURNS.into_iter().rev().find_map(|name| page.sibling(name)?.last_value())
}

/// Returns the end of all time in this database's marks, and the instant that pg_upgrade would keep; None if there is no page.
pub fn used_until() -> Result<Option<(i64, Option<i64>)>, Error> {
    let page = open()?;
    let Some((bytes, _)) = page.read(&hint()?.buffer) else { return Ok(None) };
    let marks = marks_of(&Page { bytes: Some(bytes), last_value: None, turns: None })?;
    Ok(Some((marks.last_value(), last_value(&page))))
}

fn is_sane(last_value: i64) -> bool {
    last_value <= clock::now().saturating_add(MAX_LAST_VALUE_AHEAD)
}

/// Locks the page, calls `change` with its content, applies the change, and waits until it is on disk.
pub fn change<R>(change: impl FnOnce(&Page) -> (Change, R)) -> Result<R, Error> {
    let page = open()?;
    let (last_value, turns) = (last_value(&page), turns(&page));
    let mut written = None;
    let (mut lsn, result) = page.change(COPY, |bytes| {
        let (last_value, turns) = if bytes.is_none() { (last_value, turns) } else { (None, None) };
        match change(&Page { bytes, last_value, turns }) {
            (Change::Keep, result) => (None, result),
            // pg_upgrade and replication set the value by setval, which refuses values below 1.
            (Change::Write(bytes, last_value, turns), result) => {
                written = Some(turns.max(1));
                (Some((bytes, last_value.max(1))), result)
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
