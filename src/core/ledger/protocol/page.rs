//! The page of a session's database: a session adds the page's marks to the ledger, and the ledger's mark to the page.

use super::{begun, change, in_force};
use crate::Turns;
use crate::instant::BEGINNING;
use crate::ledger::bound::Bound;
use crate::ledger::host::{Change, Fault, Host, Page, Server, Writer};
use crate::ledger::marks::Marks;
use crate::ledger::record::{newest, store};
use crate::ledger::state::Ledger;
use crate::ledger::used::Used;

/// A page after the ledger has read it.
pub(super) struct PageRead {
    pub(super) marks: Marks,
    pub(super) exists: bool,
}

/// Decodes the marks of a page.
///
/// # Errors
/// The page is unreadable.
pub fn marks_of(page: &Page) -> Result<Marks, Fault> {
    match &page.bytes {
        None => Ok(Marks {
            turns: page.turns.map_or(Turns::NONE, Turns::numbered),
            ..page.last_value.map_or_else(Marks::default, |until| Marks::of_all(Used::before(until)))
        }),
        Some(bytes) => Marks::decode(bytes).map(|(marks, _)| marks).map_err(Fault::Page),
    }
}

/// Reads the page of this session's database into the ledger, and returns it.
pub(super) fn read_page<H: Host>(host: &mut H) -> Result<PageRead, H::Error> {
    begun(host)?;
    let page = host.page()?;
    let marks = marks_of(&page)?;
    learn(host, &marks)?;
    Ok(PageRead { marks, exists: page.bytes.is_some() })
}

/// Returns the end of all time that counts as used in the ledger or in the page. The page has the marks of other parts.
///
/// # Errors
/// The server's errors, if this session has to begin the ledger; or the page is unreadable.
pub fn unused<H: Host>(host: &mut H) -> Result<i64, H::Error> {
    let page = read_page(host)?;
    Ok(begun(host)?.time.used.until().max(page.marks.last_value()))
}

/// Adds marks to the ledger.
fn learn<H: Host>(host: &mut H, marks: &Marks) -> Result<(), H::Error> {
    if host.lock(in_force).is_none_or(|old| old.having_read(marks) == old) {
        return Ok(());
    }
    let writer = host.writer();
    let Some(old) = writer.lock(in_force) else { return Ok(()) };
    let new = old.having_read(marks);
    if new != old {
        change(&writer, new, marks)?;
    }
    Ok(())
}

/// Writes the page unless it already contains the ledger's marks.
pub(super) fn raise_page<H: Host>(host: &mut H, mut page: PageRead) -> Result<(), H::Error> {
    loop {
        let Some(ledger) = host.lock(in_force) else { return Ok(()) };
        if page.exists && ledger.is_in(&page.marks) {
            return Ok(());
        }
        // A new page begins with the marks of other nodes that the file knows.
        let of_file = if page.exists { None } else { Some(known(&host.writer())?) };
        let unknown = host.change_page(|present| match marks_of(present) {
            Ok(marks) => raised(&ledger, PageRead { marks, exists: present.bytes.is_some() }, of_file),
            Err(fault) => (Change::Keep, Err(fault)),
        })?;
        match unknown? {
            None => return Ok(()),
            Some(unknown) => {
                learn(host, &unknown.marks)?;
                page = unknown;
            }
        }
    }
}

/// Returns the new page, or the page as it is if the ledger must read it first.
fn raised(ledger: &Ledger, mut page: PageRead, of_file: Option<Marks>) -> (Change, Result<Option<PageRead>, Fault>) {
    if !ledger.knows(&page.marks) || !page.exists && of_file.is_none() {
        return (Change::Keep, Ok(Some(page)));
    }
    let new = &mut page.marks;
    if let Some(of_file) = of_file.filter(|_| !page.exists) {
        new.unite(&of_file, ledger.me.part);
    }
    new.above = new.above.max(ledger.time.above);
    new.bind(ledger.horizons.bound);
    let mut mark = ledger.mark();
    // Another session of this start may have written a later mark.
    if let Some(known) = new.of(mark.by.part).filter(|known| known.by == mark.by) {
        mark.used = mark.used.united(&known.used);
    }
    new.set(mark);
    new.turns = ledger.turns;
    (Change::Write(new.encode(None), new.last_value(), new.turns.number()), Ok(None))
}

/// Returns the marks in the file, without flake_start_above and the bound on horizons. A call whose write failed may have left a
/// wrong value of those in the file; the ledger has the right one.
fn known<W: Writer>(writer: &W) -> Result<Marks, W::Error> {
    Ok(match writer.read()? {
        Some(bytes) => Marks { above: BEGINNING, bound: Bound::NONE, ..newest(&bytes)?.0.0 },
        None => Marks::default(),
    })
}

/// Makes sure that the page has this server's marks.
pub fn confirm<H: Host>(host: &mut H) -> Result<(), H::Error> {
    let page = read_page(host)?;
    raise_page(host, page)
}

/// Writes this server's mark into the page of its database, which may just have been created.
pub fn record_mark<H: Host>(host: &mut H) -> Result<(), H::Error> {
    let page = read_page(host)?;
    {
        // The file must name this incarnation and this start before any page does.
        let writer = host.writer();
        let Some(ledger) = writer.lock(in_force) else { return Ok(()) };
        store(&writer, &ledger, &page.marks)?;
    }
    raise_page(host, page)
}
