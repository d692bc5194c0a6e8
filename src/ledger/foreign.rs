//! Sessions beside the control block of another version of the library: they cannot read it. Each has a ledger of its own, starts
//! above the present instant, and leaves in the header how far it got. Their time is in the page of their database only, in the name
//! of whoever wrote there last.

use std::sync::atomic::Ordering;

use flake_core::ledger::host::{Change, Host, Page, Server};
use flake_core::ledger::marks::{Mark, Marks, Writer};
use flake_core::FinalProgress;

use super::backend::Backend;
use super::control::Header;
use crate::clock;

/// Counts this session, whose IDs begin above the present and what others of its kind have used.
pub fn join(backend: &Backend, header: &Header) {
    header.foreign_sessions.fetch_add(1, Ordering::AcqRel);
    let floor = header.foreign_floor.load(Ordering::Acquire).max(clock::now().saturating_add(1));
    backend.lock(|state| state.started_at = Some(floor));
}

/// Leaves how far this session got.
pub fn leave(backend: &Backend, header: &Header, progress: Option<&[FinalProgress]>) {
    let granted = backend.lock(|state| state.ledger.map_or(i64::MIN, |ledger| ledger.granted_until()));
    let used_before = match progress {
        Some(all) => all.iter().map(|last| last.progress.free_from()).max().unwrap_or(i64::MIN),
        None => granted.max(clock::now()),
    };
    header.foreign_floor.fetch_max(used_before, Ordering::AcqRel);
}

/// In whose name the session's own ledger writes marks.
fn me(backend: &Backend) -> Option<Writer> {
    backend.lock(|state| state.ledger.map(|ledger| ledger.me()))
}

/// Returns the page with its node's mark in this session's name.
pub fn page(backend: &Backend, mut page: Page) -> Page {
    if let (Some(me), Some(Ok((mut marks, _)))) = (me(backend), page.bytes.as_deref().map(Marks::decode)) {
        rename(&mut marks, me);
        page.bytes = Some(marks.encode(None));
    }
    page
}

/// Has the page changed, with its node's mark in the name in which it was.
pub fn change(backend: &Backend, page: &Page, change: &mut impl FnMut(&Page) -> Change) -> Change {
    let decoded = |bytes: &[u8]| Marks::decode(bytes).ok().map(|(marks, _)| marks);
    let present = page.bytes.as_deref().and_then(decoded);
    let node = backend.node().into();
    let by = present.as_ref().and_then(|marks| marks.of(node)).map(|mark| mark.by);
    match change(&self::page(backend, page.clone())) {
        Change::Keep => Change::Keep,
        Change::Write(bytes, until) => {
            let Some(mut marks) = decoded(&bytes) else { return Change::Keep };
            rename(&mut marks, by.unwrap_or(Writer { node, incarnation: 0, start: 0 }));
            Change::Write(marks.encode(None), until)
        }
    }
}

fn rename(marks: &mut Marks, by: Writer) {
    if let Some(Mark { used, .. }) = marks.of(by.node).cloned() {
        marks.set(Mark { by, used });
    }
}
