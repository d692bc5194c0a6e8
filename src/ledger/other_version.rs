//! Sessions that run beside the control block of another version of the library, which they cannot read.
//!
//! Each such session has a private ledger, starts above the current instant, and records in the header up to where it has used
//! time. The file belongs to the other version, so only the page of the session's database has that time. The session must not
//! become the page's writer, so it keeps the writer's name.

use flake_core::ledger::host::{Change, Page};
use flake_core::ledger::marks::{Author, Marks};

/// Returns the page with this session as the writer of its node's mark, as the private ledger expects it.
pub fn page(me: Option<Author>, mut page: Page) -> Page {
    if let (Some(me), Some(mut marks)) = (me, decoded(page.bytes.as_deref())) {
        marks.rename(me);
        page.bytes = Some(marks.encode(None));
    }
    page
}

/// Changes the page, and keeps the writer of its node's mark.
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
