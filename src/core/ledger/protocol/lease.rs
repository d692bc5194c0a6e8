//! How a session leases a worker of the pool, in the order that [`pool`](crate::ledger::pool) needs: the time is in the file, then
//! in the page of the session's database, then a lease ends in it.

use super::page::{raise_page, read_page};
use super::{begun, change, in_force};
use crate::ledger::host::{Host, Server, Writer};
use crate::ledger::marks::Marks;
use crate::ledger::pool::{Decision, Lease, Request};
use crate::ledger::record::newest;
use crate::ledger::state::Ledger;

/// Leases a worker of the pool.
///
/// # Errors
/// The server's errors. If a renewal raises one, its lease may have been renewed in memory all the same.
pub fn lease<H: Host>(host: &mut H, request: &Request) -> Result<Decision, H::Error> {
    let page = read_page(host)?;
    begin(host, &page.marks)?;
    let (then, is_in_page) = {
        let writer = host.writer();
        let Some(mut ledger) = writer.lock(in_force) else { return Ok(Decision::Lost) };
        let Some(pool) = ledger.pool else { return Ok(Decision::Lost) };
        let new = match pool.extended(writer.now(), writer.steady()) {
            Ok(new) => new,
            Err(wait) => return Ok(Decision::Wait(wait)),
        };
        if new != pool {
            ledger.pool = Some(new);
            change(&writer, ledger, &page.marks)?;
        }
        (new, new.is_in(&page.marks, writer.now()))
    };
    if !is_in_page {
        raise_page(host, page)?;
    }
    let mut writer = host.writer();
    let now = writer.now();
    let Some(pool) = writer.lock(in_force).and_then(|ledger| ledger.pool) else { return Ok(Decision::Lost) };
    Ok(pool.lease(writer.leases(), request, now, &then))
}

/// Begins the pool's ledger after a start or a promotion.
fn begin<H: Host>(host: &mut H, page: &Marks) -> Result<(), H::Error> {
    if begun(host)?.pool.is_some() {
        return Ok(());
    }
    let mut writer = host.writer();
    // The ledger is read here, because another session may have been granted time while this one waited for the writer.
    let Some(ledger @ Ledger { pool: None, .. }) = writer.lock(in_force) else { return Ok(()) };
    let file = writer.read()?.map(|bytes| newest(&bytes)).transpose()?;
    let begun_at = writer.lock(|state| state.begun_at);
    let new = ledger.with_pool(begun_at, file.as_ref().map(|((marks, _), _)| marks)).having_read(page);
    // After a promotion, shared memory may hold leases from before it.
    writer.leases().fill(Lease::NONE);
    // The file comes before any page that contains this start's mark of the pool.
    change(&writer, new, page)
}
