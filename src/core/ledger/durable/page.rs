//! The page of a session's database: a session counts what another writer has written there, and adds what this server knows.

use super::record::Record;
use crate::ledger::host::{Change, Host, Server};
use crate::ledger::time::begin::begun;
use crate::ledger::time::change::change;
use crate::ledger::time::state::in_force;

/// Reads the page of this session's database, and counts it.
pub(crate) fn read_page<H: Host>(host: &mut H) -> Result<Record, H::Error> {
    begun(host)?;
    let page = host.page()?.record()?;
    count(host, &page)?;
    Ok(page)
}

/// Counts a record by another writer.
fn count<H: Host>(host: &mut H, record: &Record) -> Result<(), H::Error> {
    if host.lock(in_force).is_none_or(|ledger| ledger.has_counted(record)) {
        return Ok(());
    }
    let writer = host.writer();
    if let Some(ledger) = writer.lock(in_force).filter(|ledger| !ledger.has_counted(record)) {
        change(&writer, ledger.counting(&record.reserved))?;
    }
    Ok(())
}

/// Writes the page unless it has everything already.
pub(crate) fn update_page<H: Host>(host: &mut H, mut page: Record) -> Result<(), H::Error> {
    loop {
        let Some(ledger) = host.lock(in_force) else { return Ok(()) };
        if ledger.is_in(&page) {
            return Ok(());
        }
        let uncounted = host.change_page(|present| match present.record() {
            Err(fault) => (Change::Keep, Err(fault)),
            Ok(record) if !ledger.has_counted(&record) => (Change::Keep, Ok(Some(record))),
            Ok(mut record) => {
                record.merge_reserved(&ledger.reserved);
                debug_assert!(
                    ledger.is_in(&Record { writer: ledger.writer, ..record.clone() }),
                    "the page has everything then"
                );
                (record.writer, record.turns) = (ledger.writer, ledger.turns);
                (Change::Write(record.encode(0), record.reserved, record.turns.number()), Ok(None))
            }
        })?;
        let Some(uncounted) = uncounted? else { return Ok(()) };
        count(host, &uncounted)?;
        page = uncounted;
    }
}

/// Makes sure that the page has what this server has reserved.
pub fn ensure_page_current<H: Host>(host: &mut H) -> Result<(), H::Error> {
    let page = read_page(host)?;
    update_page(host, page)
}

/// Writes this server's record into the page of its database, which may just have been created.
pub fn record_mark<H: Host>(host: &mut H) -> Result<(), H::Error> {
    let page = read_page(host)?;
    {
        // The file must have the turn before any page does.
        let writer = host.writer();
        if let Some(ledger) = writer.lock(in_force) {
            change(&writer, ledger)?;
        }
    }
    update_page(host, page)
}
