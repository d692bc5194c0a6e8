//! The page of this session's database that keeps the marks of all nodes. It travels in the WAL with the data.

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::Ordering;

use flake_core::marks::{KnownMark, Marks};
use flake_core::{Node, absent};

use super::control::Control;
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
    /// This node's mark in the page is on disk, and at this instant or above.
    static COVERED: Cell<i64> = const { Cell::new(i64::MIN) };
    /// What binds every node in the page is on disk, and at this instant or above.
    static BINDING: Cell<i64> = const { Cell::new(i64::MIN) };
}

fn open() -> Result<SequencePage<Marks>, Error> {
    SequencePage::open(EXTENSION, SEQUENCE).ok_or(Error::NoMarkSequence)
}

/// Keeps others from locking the page until the result is dropped, after waiting for those who have locked it. Where there is no
/// page, whoever asks for time learns that.
pub fn hold() -> impl Sized {
    SequencePage::<Marks>::open(EXTENSION, SEQUENCE)
}

fn checked(marks: Marks) -> Result<Marks, Error> {
    if marks.is_valid() || absent!(PageDamaged) { Ok(marks) } else { Err(Error::MarkPageCorrupted) }
}

/// Returns what the page says of a node. Where there is no page, because pg_upgrade does not copy it, the sequence's last
/// value counts for every node.
pub fn known(node: Node) -> Result<KnownMark, Error> {
    let page = open()?;
    if let Some((marks, _)) = page.read().filter(|_| !absent!(PageApart)) {
        return Ok(checked(marks)?.of(node));
    }
    let last_value = page.last_value().filter(|_| !absent!(PageLastValue));
    let inherited = last_value.and_then(sane);
    if let Some(ignored) = last_value.filter(|_| inherited.is_none()) {
        report::warning(
            "the last value of sequence \"flake_mark\" is ignored".to_owned(),
            Some(&format!("As an instant it would be {}.", Timestamptz::from_instant(ignored).to_text())),
            "Only flake should set it. If IDs were made by then, call flake_start_above with the greatest of them.",
        );
    }
    let (instant, is_listed) = (inherited.unwrap_or(i64::MIN), inherited.is_some());
    Ok(KnownMark { own: None, inherited: instant, binding: None, is_listed, of_others: instant })
}

fn sane(last_value: i64) -> Option<i64> {
    (absent!(PageSane) || last_value <= clock::now().saturating_add(MAX_LAST_VALUE_AHEAD)).then_some(last_value)
}

/// Returns whether the mark of a node in the page is on disk, and at this instant or above. A standby cannot write to the
/// page, so there it has to do without. Where there is a control block, what other sessions found saves looking.
pub fn is_covered(control: Option<&Control>, node: Node, mark: i64) -> Result<bool, Error> {
    if mark <= COVERED.get() || recovery::is_in_progress() {
        return Ok(true);
    }
    let database = recovery::database();
    if let Some(control) = control {
        COVERED.set(control.with_lock(|guarded| guarded.databases.covered(database)).max(COVERED.get()));
        if mark <= COVERED.get() {
            return Ok(true);
        }
    }
    let page = open()?;
    if let Some((marks, lsn)) = page.read()
        && checked(marks)?.own(node) >= Some(mark)
    {
        // Another session has written it, and may not have flushed it yet.
        if !absent!(PageFlushedByOthers) {
            flush(lsn);
        }
        remember(control, &page, mark);
        return Ok(true);
    }
    Ok(false)
}

/// Raises the mark of a node to an instant and waits until it is on disk, unless it is there already.
pub fn cover(control: Option<&Control>, node: Node, mark: i64) -> Result<(), Error> {
    if absent!(PageRaised) || is_covered(control, node, mark)? { Ok(()) } else { raise(control, node, mark) }
}

/// Sees to it that every node that has this page is bound to make no IDs before an instant, and waits until that is on disk.
pub fn bind(control: &Control, node: Node, mark: i64) -> Result<(), Error> {
    if mark <= BINDING.get() {
        return Ok(());
    }
    let page = open()?;
    match page.read() {
        Some((marks, lsn)) if checked(marks)?.binding() >= mark => {
            flush(lsn);
            if !page.is_new_in_transaction() {
                BINDING.set(mark);
            }
            Ok(())
        }
        _ => change(Some(control), node, mark, true),
    }
}

/// Does what [`cover`] does without asking what is known, which may be of a page that was dropped. A page that is created
/// begins with what was seen of other nodes' marks.
pub fn raise(control: Option<&Control>, node: Node, mark: i64) -> Result<(), Error> {
    // Once horizons are asked for, one record is enough for both.
    let binds = control.is_some_and(|control| control.announced.load(Ordering::Acquire) > i64::MIN);
    change(control, node, mark, binds)
}

fn change(control: Option<&Control>, node: Node, mark: i64, binds: bool) -> Result<(), Error> {
    let page = open()?;
    let of_others = control.map_or(i64::MIN, |control| control.mark_of_others.load(Ordering::Acquire));
    let of_others = if absent!(PageOfOthers) { i64::MIN } else { of_others };
    let memory = control.map_or(0, |control| control.memory.load(Ordering::Acquire));
    let last_value = page.last_value().filter(|_| !absent!(PageLastValue));
    let unlisted = last_value.and_then(sane).max(Some(of_others).filter(|&mark| mark > i64::MIN));
    let lsn = page.change(|marks| {
        let mut marks = marks.unwrap_or_else(|| Marks::new(unlisted));
        let is_raised = marks.raise(node, mark, memory);
        let is_bound = binds && marks.bind(mark, memory);
        (is_raised || is_bound).then_some((marks, marks.greatest()))
    });
    if !absent!(PageFlushed) {
        flush(lsn);
    }
    remember(control, &page, mark);
    if binds && !page.is_new_in_transaction() {
        BINDING.set(mark.max(BINDING.get()));
    }
    Ok(())
}

fn remember(control: Option<&Control>, page: &SequencePage<Marks>, mark: i64) {
    // Should the transaction that created this page be rolled back, another page would count.
    if page.is_new_in_transaction() && !absent!(PageOfTransaction) {
        return;
    }
    COVERED.set(mark.max(COVERED.get()));
    if let Some(control) = control {
        control.with_lock(|guarded| guarded.databases.cover(recovery::database(), mark));
    }
}
