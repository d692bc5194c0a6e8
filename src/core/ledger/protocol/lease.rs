//! Applications lease workers of the pool.

use super::begun;
use super::page::{Looked, look, raise_page};
use crate::ledger::host::{Host, Server, State, Writer};
use crate::ledger::marks::Marks;
use crate::ledger::pool::{Answer, Lease, Pool, Request};
use crate::ledger::record::{newest, store};

/// Leases a worker of the pool, which is the node with this number.
///
/// # Errors
/// The server's; then a lease that was renewed may be lost.
pub fn lease<H: Host>(host: &mut H, node: (u32, u32), request: &Request) -> Result<Answer, H::Error> {
    let page = look(host)?;
    begin(host, node, &page.marks)?;
    if let Err(wait) = extend(host, page, request.database)? {
        return Ok(Answer::Wait(wait));
    }
    let writer = host.writer();
    let (now, steady) = (writer.now(), writer.steady());
    let Some(pool) = writer.lock(|state| state.pool) else { return Ok(Answer::Lost) };
    Ok(writer.leases(|leases| pool.lease(leases, request, now, steady)))
}

/// Begins the pool's ledger, after a start or a promotion.
fn begin<H: Host>(host: &mut H, node: (u32, u32), page: &Marks) -> Result<(), H::Error> {
    let server = begun(host)?;
    if host.lock(|state| state.pool.is_some()) {
        return Ok(());
    }
    let writer = host.writer();
    if writer.lock(|state| state.pool.is_some()) {
        return Ok(());
    }
    let file = writer.read()?.map(|bytes| newest(&bytes)).transpose()?;
    let pool = Pool::begin(node, &server, file.as_ref().map(|((marks, _), _)| marks));
    let pool = pool.having_read(page, writer.now(), writer.steady());
    // No page names the pool in this start's name before the file does.
    store(&writer, &server, Some(&pool), Some(page))?;
    // Memory may hold leases from before a promotion.
    writer.leases(|leases| leases.fill(Lease::NONE));
    writer.lock(|state| state.pool = Some(pool));
    Ok(())
}

/// Grants the pool time ahead of the clock, in the file and in the page of this session's database. Within, returns for how many
/// microseconds there is none.
fn extend<H: Host>(host: &mut H, page: Looked, database: u32) -> Result<Result<(), i64>, H::Error> {
    let (new, is_known) = {
        let writer = host.writer();
        let in_force = |state: &mut State| {
            let pool = state.pool.as_mut()?;
            pool.check(database, &page.marks);
            Some((state.ledger?, *pool))
        };
        let Some((server, pool)) = writer.lock(in_force) else { return Ok(Err(0)) };
        let now = writer.now();
        let new = match pool.extended(database, now, writer.steady()) {
            Ok(new) => new,
            Err(wait) => return Ok(Err(wait)),
        };
        if new != pool {
            store(&writer, &server, Some(&new), Some(&page.marks))?;
            writer.lock(|state| state.pool = Some(new));
        }
        (new, new.reaches(database, now))
    };
    if !is_known {
        raise_page(host, page)?;
        let steady = host.steady();
        host.lock(|state| state.pool.as_mut().map(|pool| pool.note(database, &new, steady)));
    }
    Ok(Ok(()))
}
