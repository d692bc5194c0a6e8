//! Watermarks of this session's queries, and the transactions that hold watermarks.

use flake_core::instant::NEVER;
use flake_core::watermark::ask::ask;
use flake_core::watermark::prepared::Prepared;
use flake_core::watermark::published;
use pgrx::PgSqlErrorCode::*;
use pgrx::check_for_interrupts;

use super::backend::Backend;
use super::mark::page;
use super::memory::memory;
use super::session::with_session;
use crate::error::Error;
use crate::postgres::memory::{collect_or_raise, push, with_room};
use crate::postgres::snapshot::{LatestSnapshot, QuerySnapshot, of_query};
use crate::postgres::{proc, recovery, transaction};

/// Returns the snapshot of the query that asks for a watermark.
pub fn snapshot() -> Result<QuerySnapshot, Error> {
    // A parallel worker copies its leader's snapshot but not this note, so the two could return different watermarks.
    if transaction::is_in_worker() {
        return Err(Error::of(ERRCODE_INVALID_TRANSACTION_STATE, "cannot ask for a watermark in a parallel worker")
            .detail("A statement has one watermark, which its leader asks for.")
            .hint("Declare functions that call flake_watermark() PARALLEL RESTRICTED."));
    }
    of_query().ok_or_else(|| {
        Error::not_ready("cannot ask for a watermark outside a query")
            .detail("A watermark belongs to the snapshot by which a query reads.")
            .hint("Ask in the query that reads the rows.")
    })
}

/// Returns, on a standby, the highest published watermark below which a snapshot sees all rows.
pub fn replayed(snapshot: &QuerySnapshot) -> Result<i64, Error> {
    published::replayed(snapshot, page::read)?.ok_or_else(|| {
        Error::not_ready("no watermark is known for this snapshot")
            .detail(
                "A standby returns watermarks that its primary has published; this snapshot is older than all that \
                 were replayed.",
            )
            .hint(
                "Call flake_publish_watermark() on the primary, and ask again by a new snapshot once this server has \
                 replayed it.",
            )
    })
}

/// Publishes the current watermark for standbys, and returns it.
pub fn publish(mut own: Backend) -> Result<i64, Error> {
    loop {
        let _latest = LatestSnapshot::take();
        if let Some(watermark) = with_session(|session| published::publish(&mut own, session, &snapshot()?))? {
            return Ok(watermark);
        }
        check_for_interrupts!();
    }
}

/// Returns a watermark: neither this query nor a later one can find a new ID below it.
pub fn watermark(mut own: Backend, snapshot: &QuerySnapshot) -> Result<i64, Error> {
    with_session(|session| ask(&mut own, session, snapshot))
}

/// An open transaction that holds the watermarks of this database.
pub struct OpenTransaction {
    /// The process of its session; None if it is prepared.
    pub pid: Option<i32>,
    /// The lower 32 bits of its transaction ID if it is prepared.
    pub xid: Option<u32>,
    /// The role of its session; None if it is prepared.
    pub role: Option<pgrx::pg_sys::Oid>,
    /// The instant at which it holds watermarks.
    pub bound: i64,
}

/// Returns the open transactions that hold the watermarks of this database.
pub fn open_transactions() -> Vec<OpenTransaction> {
    let Some(memory) = memory() else { return Vec::new() };
    let database = recovery::database();
    let mut open = Vec::new();
    for (number, proc) in (0..).zip(memory.procs) {
        let bound = proc.bound();
        let (pid, role) = transaction::process_of(number);
        if bound != NEVER && proc.database() == database && pid != 0 {
            push(&mut open, OpenTransaction { pid: Some(pid), xid: None, role: Some(role), bound });
        }
    }
    let mut prepared = with_room(memory.prepared_count());
    memory.with_prepared(|all| prepared.extend_from_slice(all));
    for one in prepared.into_iter().filter(|one: &Prepared| one.database == database) {
        if let Some(xid) = one.xid() {
            push(&mut open, OpenTransaction { pid: None, xid: Some(xid as u32), role: None, bound: one.bound });
        }
    }
    open
}

/// A transaction of another session that has made IDs. It may still use time that was granted before.
#[derive(PartialEq)]
pub struct MakingIds {
    pub pid: i32,
    pub database: u32,
    /// The instant of its first ID.
    bound: i64,
}

/// Returns the transactions of other sessions, in all databases, that have made IDs.
pub fn making_ids() -> Vec<MakingIds> {
    let Some(memory) = memory() else { return Vec::new() };
    let own = proc::number();
    let others = (0..).zip(memory.procs).filter(|(number, _)| *number != own);
    let busy = others.map(|(number, proc)| MakingIds {
        pid: transaction::process_of(number).0,
        database: proc.database(),
        bound: proc.bound(),
    });
    collect_or_raise(busy.filter(|one| one.pid != 0 && one.bound != NEVER))
}
