//! The page of this session's database that keeps the marks of all nodes. It travels in the WAL with the data.

use std::cell::Cell;
use std::ffi::CStr;

use flake_core::ledger::host::{Change, Page};

use super::super::attach::attach;
use crate::clock;
use crate::error::Error;
use crate::postgres::sequence_page::{SequencePage, flush};
use crate::postgres::timestamptz::Timestamptz;
use crate::postgres::{recovery, report};

const EXTENSION: &CStr = c"flake";
const SEQUENCE: &CStr = c"flake_mark";
/// A sequence's last value that is further ahead of the clock is not a mark: somebody has set it. In microseconds.
const MAX_LAST_VALUE_AHEAD: i64 = 3_600_000_000;

thread_local! {
    /// Whether this session has said that it ignores the last value.
    static HAS_WARNED: Cell<bool> = const { Cell::new(false) };
}

fn find() -> Option<SequencePage> {
    let pages = attach().ok().map(|attachment| &attachment.control.pages);
    let known = pages.map_or(0, |pages| pages.of(recovery::database()));
    let page = SequencePage::open(known, EXTENSION, SEQUENCE)?;
    let oid = page.oid().to_u32();
    if let Some(pages) = pages.filter(|_| oid != known) {
        pages.note(recovery::database(), oid);
    }
    Some(page)
}

fn open() -> Result<SequencePage, Error> {
    let page = find().ok_or(Error::NoMarkSequence)?;
    if page.is_logged() { Ok(page) } else { Err(Error::MarkNotLogged) }
}

/// Keeps others from locking the page until the result is dropped, after waiting for those who have locked it. Where there is no
/// page, whoever asks for time learns that.
pub fn hold() -> impl Sized {
    find()
}

/// Reads the page, and waits until what was read is on disk. Where there is no page, because pg_upgrade does not copy it, there
/// is the sequence's last value.
pub fn read() -> Result<Page, Error> {
    let page = open()?;
    if let Some((bytes, lsn)) = page.read(attach()?.control.pages.buffer(recovery::database())) {
        // Another session may have written it, and not flushed it yet.
        if !recovery::is_in_progress() {
            flush(lsn);
        }
        return Ok(Page { bytes: Some(bytes), last_value: None });
    }
    let last_value = page.last_value();
    if let Some(ignored) = last_value.filter(|&value| !is_sane(value) && !HAS_WARNED.replace(true)) {
        report::warning(
            "the last value of sequence \"flake_mark\" is ignored".to_owned(),
            Some(&format!("As an instant it would be {}.", Timestamptz::from_instant(ignored).to_text())),
            "Only flake should set it. If IDs were made by then, call flake_start_above with the greatest of them.",
        );
    }
    Ok(Page { bytes: None, last_value: last_value.filter(|&value| is_sane(value)) })
}

fn is_sane(last_value: i64) -> bool {
    last_value <= clock::now().saturating_add(MAX_LAST_VALUE_AHEAD)
}

/// Has `change` decide while nobody else changes the page, and waits until the result is on disk.
pub fn change<R>(change: impl FnOnce(&Page) -> (Change, R)) -> Result<R, Error> {
    let (lsn, result) = open()?.change(|bytes, last_value| {
        let last_value = last_value.filter(|&value| bytes.is_none() && is_sane(value));
        match change(&Page { bytes, last_value }) {
            (Change::Keep, result) => (None, result),
            (Change::Write(bytes, last_value), result) => (Some((bytes, last_value)), result),
        }
    });
    flush(lsn);
    Ok(result)
}
