//! flake_lease() grants an application a worker of the pool, so that it can make IDs by itself; flake_leases shows all leases.

use flake_core::ledger::pool::{Decision, Lease};
use flake_core::{BUILTIN, IdSource, Layout};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;

use crate::error::{Error, OrRaise, owner_only, raise};
use crate::layouts::{by_name, custom};
use crate::postgres::entry_point::c_symbol;
use crate::postgres::role;
use crate::postgres::timestamptz::from_instant;
use crate::{clock, ledger};

#[pg_extern(sql = "")]
#[allow(clippy::type_complexity, reason = "the columns of a row")]
fn flake_lease(
    layout: &[u8],
    worker: Option<i32>,
    until: Option<i64>,
) -> TableIterator<
    'static,
    (
        name!(worker, Option<i32>),
        name!(tick_from, Option<i64>),
        name!(tick_until, Option<i64>),
        name!(shift, Option<i32>),
        name!(low, Option<i64>),
        name!(count, Option<i32>),
        name!(epoch, Option<i64>),
        name!(tick, Option<i64>),
        name!(now, i64),
        name!(until, Option<i64>),
        name!(wait, i64),
    ),
> {
    // There are few workers, so only the owner of the extension, and roles that it chooses, may lease them.
    owner_only("flake_lease").or_raise();
    let layout = by_name(layout);
    let name = || layout.name().to_owned().into();
    if !layout.generates {
        raise(Error::ReadOnly { layout: name() });
    }
    let Some(shift) = layout.lease_shift() else { raise(Error::NotLeasable { layout: name() }) };
    let last = match (worker, until) {
        (None, None) => None,
        (Some(worker), Some(until)) => Some((worker as u32, until)),
        _ => raise(Error::HalfALease),
    };
    let now = clock::now();
    layout.ticks().tick_to_generate_in(now, layout.name()).or_raise();
    let (answer, sequences) = ledger::lease(layout, last).or_raise();
    let row = match answer {
        Decision::Granted { worker, from, to, until } => (
            Some(worker as i32),
            Some(from as i64),
            Some(to as i64),
            Some(shift as i32),
            Some((u64::from(worker) * layout.sequences() + sequences.first) as i64),
            Some(sequences.count as i32),
            Some(layout.epoch()),
            Some(layout.tick_length()),
            clock::now(),
            Some(until),
            0,
        ),
        Decision::Wait(by) => (None, None, None, None, None, None, None, None, clock::now(), None, by),
        Decision::Lost => raise(Error::LeaseLost { layout: name(), worker: worker.unwrap_or_default() as u32 }),
        Decision::Exhausted(until) => raise(Error::NoFreeWorker { layout: name(), until }),
        Decision::Full => raise(Error::TooManyLeases),
    };
    TableIterator::once(row)
}

#[pg_extern(sql = "")]
#[allow(clippy::type_complexity, reason = "the columns of a view")]
fn flake_leases() -> TableIterator<
    'static,
    (
        name!(layout, Option<String>),
        name!(worker, i32),
        name!(until, TimestampWithTimeZone),
        name!(database, pg_sys::Oid),
        name!(role, Option<String>),
        name!(application_name, Option<String>),
        name!(since, TimestampWithTimeZone),
    ),
> {
    let leases = ledger::leases(clock::now());
    let custom = custom::all().filter_map(|(_, layout)| layout.ok());
    let layouts: Vec<&'static Layout> = custom.chain(BUILTIN).collect();
    let row = move |lease: Lease| {
        // The lease may be for a custom layout of another database, whose name is unknown here.
        let layout = layouts.iter().find(|layout| layout.key() == lease.key);
        let holder = pg_sys::Oid::from(lease.by.role);
        let sees = role::sees_activity_of(holder);
        let end = lease.by.application.iter().position(|&byte| byte == 0).unwrap_or(lease.by.application.len());
        (
            layout.map(|layout| layout.name().to_string()),
            lease.worker as i32,
            from_instant(lease.until),
            lease.database.into(),
            sees.then(|| role::name(holder)),
            sees.then(|| String::from_utf8_lossy(&lease.by.application[..end]).into_owned()),
            from_instant(lease.since),
        )
    };
    TableIterator::new(leases.into_iter().map(row))
}

c_symbol!(flake_lease, flake_leases);
