//! PostgreSQL's side of leases: which session asks, for which node number, and which leases shared memory holds.

use std::sync::atomic::Ordering;

use flake_core::ledger::host::{Host, Server, Writer};
use flake_core::ledger::pool::{Answer, Holder, Lease, Request};
use flake_core::ledger::protocol;
use flake_core::{IdSource, Layout, Node};

use super::attach::control;
use super::backend::Backend;
use super::node::lease_node;
use crate::error::Error;
use crate::postgres::{recovery, role, session_name};

/// Leases a worker of a layout. To renew a lease, `last` is its worker and its end.
pub fn lease(layout: &'static Layout, last: Option<(u32, i64)>) -> Result<Answer, Error> {
    recovery::refuse(c"flake_lease()");
    let pool = pool()?;
    let workers = pool.workers(layout)?;
    let mut backend = Backend::with_leases()?;
    let request = Request {
        key: layout.key(),
        ticks: layout.ticks(),
        workers,
        database: recovery::database(),
        last,
        by: Holder { role: role::of_session().to_u32(), application: session_name::application() },
    };
    protocol::lease(&mut backend, pool.into(), &request)
}

/// Returns the pool: the node number that this server leases the workers of.
pub fn pool() -> Result<Node, Error> {
    let pool = lease_node()?;
    let in_force = control().and_then(|control| control.with_lock(|guarded| guarded.state.pool));
    match in_force.map(|pool| pool.ledger().me.node) {
        Some(found) if found != pool.into() => {
            Err(Error::LeaseNodeNotInForce { configured: pool.id(), found: found.0 })
        }
        _ => Ok(pool),
    }
}

/// Returns the leases in shared memory that have not ended.
pub fn leases(now: i64) -> Result<Vec<Lease>, Error> {
    if control().is_none_or(|control| control.leases.load(Ordering::Acquire) == 0) {
        return Ok(Vec::new());
    }
    let mut backend = Backend::with_leases()?;
    let writer = backend.writer();
    let era = writer.lock(|state| state.pool.map(|pool| pool.ledger().era));
    let is_on = |lease: &&Lease| lease.until > now && Some(lease.era()) == era;
    Ok(writer.leases(|leases| leases.iter().filter(is_on).copied().collect()))
}
