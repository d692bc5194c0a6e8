//! PostgreSQL's side of leases: which session asks, and which leases shared memory holds.

use flake_core::ledger::pool::{Decision, Holder, Lease, Request};
use flake_core::ledger::protocol;
use flake_core::{IdSource, Layout, Numbers, Part};

use super::backend::Backend;
use super::memory::memory;
use crate::error::Error;
use crate::postgres::{recovery, role, session_name};

/// Leases a worker of a layout, for which it also returns the sequence numbers. To renew a lease, `last` is its worker and its end.
pub fn lease(layout: &'static Layout, last: Option<(u32, i64)>) -> Result<(Decision, Numbers), Error> {
    recovery::refuse(c"flake_lease()");
    let mut backend = Backend::new()?;
    let part = protocol::part(&mut backend)?;
    let (workers, sequences) = Part::of_lessees(part.node(), part.turn()).numbers(layout)?;
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

/// Returns the leases in shared memory that have not ended.
pub fn leases(now: i64) -> Vec<Lease> {
    let Some(control) = memory().map(|memory| memory.control) else { return Vec::new() };
    let leases = control.leases.lock();
    let era = control.with_state(|state| state.ledger.and_then(|ledger| ledger.pool).map(|pool| pool.time.era));
    let is_on = |lease: &&Lease| lease.until > now && Some(lease.era()) == era;
    leases.iter().filter(is_on).copied().collect()
}
