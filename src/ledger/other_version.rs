//! Sessions beside the control block of another version of the library, which they cannot read. Each has a ledger of its own, starts
//! above the present instant, and leaves in the header how far it got. Their time is in the page of their database only, in the name
//! of whoever wrote there last.

use flake_core::ledger::host::{Change, Page};
use flake_core::ledger::marks::{Author, Marks};

/// Returns the page with its node's mark in the session's own name.
pub fn page(me: Option<Author>, mut page: Page) -> Page {
    if let (Some(me), Some(mut marks)) = (me, decoded(page.bytes.as_deref())) {
        marks.rename(me);
        page.bytes = Some(marks.encode(None));
    }
    page
}

/// Has the page changed, with its node's mark in the name in which it was.
pub fn change<R>(me: Option<Author>, present: &Page, change: impl FnOnce(&Page) -> (Change, R)) -> (Change, R) {
    let by = |node| decoded(present.bytes.as_deref())?.of(node).map(|mark| mark.by);
    let (change, result) = change(&page(me, present.clone()));
    let renamed = match (change, me) {
        (Change::Write(bytes, until), Some(me)) => decoded(Some(&bytes)).map(|mut marks| {
            marks.rename(by(me.node).unwrap_or(Author { incarnation: 0, start: 0, ..me }));
            Change::Write(marks.encode(None), until)
        }),
        _ => None,
    };
    (renamed.unwrap_or(Change::Keep), result)
}

fn decoded(bytes: Option<&[u8]>) -> Option<Marks> {
    Marks::decode(bytes?).ok().map(|(marks, _)| marks)
}
