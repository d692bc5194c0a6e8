//! flake_lease() grants an application a lot of the pool, so that it can make IDs by itself; flake_release() gives it back, and
//! flake_leases shows all leases.

use flake_core::ledger::pool::{Decision, Lease};
use flake_core::{BUILTIN, Composition, IdSource, Layout, Parts};
use pgrx::PgSqlErrorCode::*;
use pgrx::datum::{Inet, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::error::{Error, OrRaise, owner_only};
use crate::layouts::{by_name, custom};
use crate::postgres::client::text;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::memory::collected;
use crate::postgres::role;
use crate::postgres::timestamptz::from_instant;
use crate::session::read_only;
use crate::{clock, ledger};

/// The version of the rules by which clients read a row.
const PROTOCOL: i32 = 1;

#[pg_extern(sql = "")]
#[allow(clippy::type_complexity, reason = "the columns of a row")]
fn flake_lease(
    layout: Option<&[u8]>,
    token: Option<i64>,
) -> TableIterator<
    'static,
    (
        name!(protocol, i32),
        name!(reason, Option<&'static str>),
        name!(wait, i64),
        name!(token, Option<i64>),
        name!(worker, Option<i64>),
        name!(tick_from, Option<i64>),
        name!(tick_until, Option<i64>),
        name!(shift, Option<i32>),
        name!(low, Option<i64>),
        name!(step, Option<i32>),
        name!(count, Option<i64>),
        name!(epoch, Option<i64>),
        name!(tick, Option<i64>),
        name!(now, i64),
        name!(until, Option<i64>),
    ),
> {
    owner_only("flake_lease").or_raise();
    let layout = by_name(layout.unwrap_or_default());
    let Composition { shift, step } = composition(layout);
    // Of a timestamp with bit 63, a lessee makes the IDs that are not negative.
    let ticks = layout.ordered_ticks().or_raise();
    ticks.tick_to_generate_in(clock::now(), layout.name()).or_raise();
    let (answer, lots) = ledger::lease(layout, ticks, token.map(number)).or_raise();
    let row = match answer {
        Decision::Granted { lot, token, from, to, until } => {
            let (worker, sequences) = lots.lot(lot);
            let first = Parts { tick: 0, worker, sequence: sequences.first, random: 0 };
            (
                PROTOCOL,
                None,
                0,
                Some(bigint(token)),
                Some(bigint(worker)),
                Some(bigint(from)),
                Some(bigint(to)),
                Some(shift as i32),
                Some(bigint(layout.pack(&first).or_raise())),
                Some(step as i32),
                Some(bigint(sequences.count)),
                Some(layout.epoch()),
                Some(layout.tick_length()),
                clock::now(),
                Some(until),
            )
        }
        Decision::Refused(refusal, wait) => {
            let reason = Some(refusal.name());
            (PROTOCOL, reason, wait, None, None, None, None, None, None, None, None, None, None, clock::now(), None)
        }
    };
    TableIterator::once(row)
}

/// Ends a lease after its last tick that was used, or where it began.
#[pg_extern(sql = "")]
fn flake_release(layout: Option<&[u8]>, token: Option<i64>, last_tick: Option<i64>) -> bool {
    owner_only("flake_release").or_raise();
    let layout = by_name(layout.unwrap_or_default());
    let after = last_tick.map(|tick| {
        let Ok(tick) = u64::try_from(tick) else {
            let detail = format!("The tick is {tick}; for a lease that was not used, it is NULL.");
            Error::invalid("last_tick must not be negative").detail(detail).raise()
        };
        layout.start_of(tick.saturating_add(1).min(layout.last_tick()))
    });
    ledger::release(layout, token.map_or(0, number), after).or_raise()
}

/// Tokens are not negative. No lease has the token 0.
fn number(given: i64) -> u64 {
    u64::try_from(given).unwrap_or(0)
}

/// Everything in a row is below 2^63: a timestamp has a bit at least, and IDs of ordered ticks are not negative.
fn bigint(value: u64) -> i64 {
    value.try_into().unwrap_or_else(|_| pgrx::error!("{value} is not a bigint"))
}

/// Returns how IDs are composed. Raises an error if an application cannot.
fn composition(layout: &Layout) -> Composition {
    let name = layout.name();
    if !layout.generates {
        read_only(name).raise();
    }
    layout.composition().unwrap_or_else(|reason| {
        Error::of(ERRCODE_FEATURE_NOT_SUPPORTED, format!("layout \"{name}\" cannot be leased"))
            .detail(reason)
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
        name!(worker, i64),
        name!(until, TimestampWithTimeZone),
        name!(database, pg_sys::Oid),
        name!(role, Option<String>),
        name!(application_name, Option<String>),
        name!(client_addr, Option<Inet>),
        name!(pid, Option<i32>),
        name!(since, TimestampWithTimeZone),
    ),
> {
    let leases = ledger::leases(clock::now());
    let custom = custom::all().filter_map(|(_, layout)| layout.ok());
    let layouts: Vec<&'static Layout> = collected(custom.chain(BUILTIN));
    let row = move |lease: Lease| {
        // The lease may be for a custom layout of another database, whose name is unknown here.
        let layout = layouts.iter().find(|layout| layout.key() == lease.key);
        let holder = pg_sys::Oid::from(lease.by.role);
        let sees = role::sees_activity_of(holder);
        let address = text(&lease.by.address);
        (
            layout.map(|layout| layout.name().to_string()),
            bigint(lease.worker),
            from_instant(lease.until),
            lease.database.into(),
            sees.then(|| role::name(holder)),
            sees.then(|| text(&lease.by.application)),
            (sees && !address.is_empty()).then_some(Inet(address)),
            sees.then_some(lease.by.pid),
            from_instant(lease.since),
        )
    };
    TableIterator::new(leases.into_iter().map(row))
}

c_symbol!(flake_lease, flake_release, flake_leases);
