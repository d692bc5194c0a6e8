//! How a session leases a lot of the pool, in the order that [`pool`](crate::ledger::pool) needs: the time is in the file, then
//! in the page of the session's database, then a lease ends in it.

use super::page::{raise_page, read_page};
use super::{begun, change, in_force};
use crate::ledger::host::{Host, Server, Writer};
use crate::ledger::pool::{Claim, Decision, Refusal, Request};

/// Leases a lot of the pool.
///
/// # Errors
/// The server's errors. A renewal that raises one has not used its token.
pub fn lease<H: Host>(host: &mut H, request: &Request) -> Result<Decision, H::Error> {
    let page = read_page(host)?;
    let (then, is_in_page) = {
        let writer = host.writer();
        let Some(mut ledger) = writer.lock(in_force) else { return Ok(Decision::Refused(Refusal::Lost, 0)) };
        let new = match ledger.pool.extended(writer.now()) {
            Ok(new) => new,
            Err(refused) => return Ok(refused),
        };
        if new != ledger.pool {
            ledger.pool = new;
            change(&writer, ledger, &page.marks)?;
        }
        (new, page.exists && new.is_in(&page.marks, writer.now()))
    };
    if !is_in_page {
        raise_page(host, page)?;
    }
    let mut writer = host.writer();
    let (now, chance) = (writer.now(), (writer.chance(), writer.chance()));
    // Neither half is 0, so the token is from 1 to 2^63 - 1.
    let token = (u64::from(chance.0) << 32 | u64::from(chance.1)) >> 1;
    let Some(mut pool) = writer.lock(in_force).map(|ledger| ledger.pool) else {
        return Ok(Decision::Refused(Refusal::Lost, 0));
    };
    let decision = pool.lease(writer.leases(), request, now, token, &then);
    writer.lock(|state| state.ledger.as_mut().map(|ledger| ledger.pool = pool));
    Ok(decision)
}

/// Ends a lease at an instant, or where its last grant begins. Returns whether there was one.
///
/// # Errors
/// The server's errors, if this session has to begin the ledger.
pub fn release<H: Host>(host: &mut H, claim: Claim, at: Option<i64>) -> Result<bool, H::Error> {
    let _ = begun(host)?;
    let mut writer = host.writer();
    let Some(ledger) = writer.lock(in_force) else { return Ok(false) };
    Ok(ledger.pool.release(writer.leases(), claim, at))
}
