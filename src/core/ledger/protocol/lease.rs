//! How a session leases a worker of the pool, in the order that [`pool`](crate::ledger::pool) needs: the time is in the file, then
//! in the page of the session's database, then a lease ends in it.

use super::page::{look, raise_page};
use super::{begun, in_force};
use crate::ledger::host::{Host, Server, State, Writer};
use crate::ledger::marks::Marks;
use crate::ledger::pool::{Decision, Lease, Pool, Request};
use crate::ledger::record::{newest, store};

/// Leases a worker of the pool.
///
/// # Errors
/// The server's errors. If a renewal raises one, its lease may have been renewed in memory all the same.
pub fn lease<H: Host>(host: &mut H, request: &Request) -> Result<Decision, H::Error> {
    let page = look(host)?;
    begin(host, &page.marks)?;
    let (then, is_in_page) = {
        let writer = host.writer();
        let in_force = |state: &mut State| Some((state.ledger?, state.pool?));
        let Some((server, pool)) = writer.lock(in_force) else { return Ok(Decision::Lost) };
        let new = match pool.extended(writer.now(), writer.steady()) {
            Ok(new) => new,
            Err(wait) => return Ok(Decision::Wait(wait)),
        };
        if new != pool {
            store(&writer, &server, Some(&new), &page.marks)?;
            writer.lock(|state| state.pool = Some(new));
        }
        (new, new.is_in(&page.marks, writer.now()))
    };
    if !is_in_page {
        raise_page(host, page)?;
    }
    let mut writer = host.writer();
    let now = writer.now();
    let Some(pool) = writer.lock(|state| state.pool) else { return Ok(Decision::Lost) };
    Ok(pool.lease(writer.leases(), request, now, &then))
}

/// Begins the pool's ledger after a start or a promotion.
fn begin<H: Host>(host: &mut H, page: &Marks) -> Result<(), H::Error> {
    begun(host)?;
    if host.lock(|state| state.pool.is_some()) {
        return Ok(());
    }
    let mut writer = host.writer();
    // The ledger is read here, because another session may have been granted time while this one waited for the writer.
    let Some((server, None)) = writer.lock(in_force) else { return Ok(()) };
    let file = writer.read()?.map(|bytes| newest(&bytes)).transpose()?;
    let begun_at = writer.lock(|state| state.begun_at);
    let pool = Pool::begin(&server, begun_at, file.as_ref().map(|((marks, _), _)| marks));
    let pool = pool.having_read(page, writer.now());
    // The file comes before any page that contains this start's mark of the pool.
    store(&writer, &server, Some(&pool), page)?;
    // After a promotion, shared memory may hold leases from before it.
    writer.leases().fill(Lease::NONE);
    writer.lock(|state| state.pool = Some(pool));
    Ok(())
}
