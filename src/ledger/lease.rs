//! PostgreSQL's side of leases: which session asks, and which leases shared memory holds.

use std::sync::atomic::Ordering;

use flake_core::ledger::host::{Host, Server, Writer};
use flake_core::ledger::pool::{Decision, Holder, Lease, Request};
use flake_core::ledger::protocol;
use flake_core::{IdSource, Layout, Numbers, Part};

use super::attach::control;
use super::backend::Backend;
use crate::error::Error;
use crate::postgres::{recovery, role, session_name};

/// Leases a worker of a layout, for which it also returns the sequence numbers. To renew a lease, `last` is its worker and its end.
pub fn lease(layout: &'static Layout, last: Option<(u32, i64)>) -> Result<(Decision, Numbers), Error> {
    recovery::refuse(c"flake_lease()");
    let mut backend = Backend::with_leases()?;
    let (workers, sequences) = lessees(&mut backend)?.numbers(layout)?;
    let request = Request {
        key: layout.key(),
        ticks: layout.ticks(),
        workers,
        database: recovery::database(),
        last,
        by: Holder { role: role::of_session().to_u32(), application: session_name::application() },
    };
    Ok((protocol::lease(&mut backend, &request)?, sequences))
}

/// Returns the part of this node's IDs that applications lease.
pub fn lessees(backend: &mut Backend) -> Result<Part, Error> {
    let part = protocol::part(backend)?;
    Ok(Part::of_lessees(part.node(), part.turn()))
}

/// Returns the leases in shared memory that have not ended.
pub fn leases(now: i64) -> Result<Vec<Lease>, Error> {
    if control().is_none_or(|control| control.leases.load(Ordering::Acquire) == 0) {
        return Ok(Vec::new());
    }
    let mut backend = Backend::with_leases()?;
    let writer = backend.writer();
    let era = writer.lock(|state| state.pool.map(|pool| pool.time.era));
    let is_on = |lease: &&Lease| lease.until > now && Some(lease.era()) == era;
    Ok(writer.leases(|leases| leases.iter().filter(is_on).copied().collect()))
}
