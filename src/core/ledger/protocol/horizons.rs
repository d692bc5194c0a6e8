//! Binding horizons: before a server announces a horizon, the file and the page say that other servers must not make IDs below it.

use super::page::{raise_page, read_page};
use super::time::{Grant, grant};
use super::{begun, change, in_force};
use crate::instant::BEGINNING;
use crate::ledger::host::{Host, Server, State};

/// Binds other servers up to the end of granted time, and grants the current instant. Returns the instant that can be announced.
/// This is the current instant, unless a clock that was ahead has used it: then it is the end of the granted time before that.
pub fn bind<H: Host>(host: &mut H) -> Result<i64, H::Error> {
    let is_binding =
        |state: &mut State| !state.file.is_in_doubt && state.ledger.is_some_and(|ledger| ledger.binding() == ledger);
    begun(host)?;
    if !host.lock(is_binding) {
        let page = read_page(host)?;
        let writer = host.writer();
        if let Some(ledger) = writer.lock(in_force) {
            change(&writer, ledger.binding(), &page.marks)?;
        }
    }
    let now = host.now();
    if let Grant::Window(..) = grant(host, now, now.saturating_add(1), false)? {
        return Ok(now);
    }
    let page = read_page(host)?;
    let settled = {
        let writer = host.writer();
        let Some(old) = writer.lock(in_force) else { return Ok(BEGINNING) };
        let (new, settled) = old.settled(now);
        if new != old {
            change(&writer, new, &page.marks)?;
        }
        settled
    };
    raise_page(host, page)?;
    Ok(settled)
}
