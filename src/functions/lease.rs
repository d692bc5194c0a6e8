//! flake_lease() grants an application a worker of the pool, so that it can make IDs by itself; flake_leases shows all leases.

use flake_core::ledger::pool::{Decision, Lease, MOST_LEASES};
use flake_core::{BUILTIN, IdSource, Layout};
use pgrx::PgSqlErrorCode::*;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;

use crate::error::{Error, OrRaise, owner_only};
use crate::layouts::{by_name, custom};
use crate::postgres::entry_point::c_symbol;
use crate::postgres::role;
use crate::postgres::timestamptz::{from_instant, to_text};
use crate::session::read_only;
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
    let name = layout.name();
    let shift = lease_shift(layout);
    let last = match (worker, until) {
        (None, None) => None,
        (Some(worker), Some(until)) => Some((worker as u32, until)),
        _ => Error::invalid("worker and end of a lease have to be given together")
            .detail("A lease is renewed by its worker and the end that the last answer had.")
            .hint("Give both, or none for a new lease.")
            .raise(),
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
        Decision::Lost => Error::not_ready(format!(
            "lease of worker {} of layout \"{name}\" cannot be renewed",
            worker.unwrap_or_default() as u32
        ))
        .detail("It has been renewed since, another application has the worker, or the server was restarted.")
        .hint("Ask for a new lease, without a worker.")
        .raise(),
        Decision::Exhausted(until) => Error::not_ready(format!("all workers of layout \"{name}\" are leased"))
            .detail(format!(
                "A database can have half of the workers that applications lease from this server. The next lease \
                     ends at {}.",
                to_text(until)
            ))
            .hint("Wait until then, or use a layout with more workers.")
            .raise(),
        Decision::Full => Error::of(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, "too many leases")
            .detail(format!("A server can have {MOST_LEASES} leases at once."))
            .hint("Let the processes of an application share one lease.")
            .raise(),
    };
    TableIterator::once(row)
}

/// Returns how far the worker and sequence bits are below the timestamp. Raises an error if workers cannot be leased.
fn lease_shift(layout: &Layout) -> u32 {
    let name = layout.name();
    if !layout.generates {
        read_only(name).raise();
    }
    layout.lease_shift().unwrap_or_else(|| {
        Error::of(ERRCODE_FEATURE_NOT_SUPPORTED, format!("workers of layout \"{name}\" cannot be leased"))
            .detail(
                "An application composes IDs of a timestamp, a worker and a sequence number, in this order and \
                 nothing else, with ticks of at most a second.",
            )
            .hint("Use a layout such as \"twitter\", or flake_batch.")
            .raise()
    })
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
