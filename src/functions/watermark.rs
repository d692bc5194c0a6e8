//! The functions of watermarks, by which consumers read a table in the order of its IDs without losing rows.

use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::layouts::by_name;
use crate::ledger;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::role;
use crate::postgres::timestamptz::from_instant;
use crate::session;

#[pg_extern(sql = "")]
fn flake_watermark() -> TimestampWithTimeZone {
    from_instant(session::watermark().or_raise())
}

#[pg_extern(sql = "")]
fn flake_publish_watermark() -> TimestampWithTimeZone {
    from_instant(session::publish_watermark().or_raise())
}

#[pg_extern(sql = "")]
fn flake_cover(id: i64, layout: &[u8]) -> i64 {
    let layout = by_name(layout);
    let tick = layout.unpack(id as u64).or_raise().tick;
    let start = layout.start_of(tick);
    session::cover(c"flake_cover()", id, start..start.saturating_add(layout.tick_length())).or_raise();
    id
}

#[pg_extern(sql = "")]
fn flake_open_transactions() -> TableIterator<
    'static,
    (name!(pid, Option<i32>), name!(xid, Option<pg_sys::TransactionId>), name!(since, Option<TimestampWithTimeZone>)),
> {
    let open = ledger::open_transactions();
    let row = |one: ledger::OpenTransaction| {
        let since = one.role.is_none_or(role::sees_activity_of).then(|| from_instant(one.bound));
        (one.pid, one.xid.map(Into::into), since)
    };
    TableIterator::new(open.into_iter().map(row))
}

c_symbol!(flake_watermark, flake_publish_watermark, flake_cover, flake_open_transactions);
