//! The horizons of this session's queries, and who holds those of others.

use std::sync::atomic::Ordering;

use flake_core::horizon::ask::ask;
use flake_core::horizon::published;
use pgrx::check_for_interrupts;

use super::attach::attached;
use super::backend::Backend;
use super::mark::page;
use super::segment::segment;
use super::transactions::with_session;
use crate::error::Error;
use crate::postgres::snapshot::{Latest, QuerySnapshot, of_query};
use crate::postgres::{prepared, recovery, slot, transaction};

/// Returns the snapshot that a horizon is asked for.
pub fn snapshot() -> Result<QuerySnapshot, Error> {
    // A worker has a copy of its leader's snapshot without the note, and could answer otherwise than the leader.
    if transaction::is_in_worker() { Err(Error::HorizonInWorker) } else { of_query().ok_or(Error::NoQuerySnapshot) }
}

/// Returns the highest published horizon of which a snapshot that was taken on a standby sees all.
pub fn replayed(snapshot: &QuerySnapshot) -> Result<i64, Error> {
    published::replayed(snapshot, page::read)?.ok_or(Error::NothingPublished)
}

/// Publishes the present horizon for standbys; returns it.
pub fn publish(mut backend: Backend) -> Result<i64, Error> {
    check_versions(&backend)?;
    loop {
        let _latest = Latest::take();
        if let Some(horizon) = with_session(|session| published::publish(&mut backend, session, &snapshot()?))? {
            return Ok(horizon);
        }
        check_for_interrupts!();
    }
}

/// Returns an instant below which no ID can appear any more in what this query or a later one sees.
pub fn horizon(mut backend: Backend, snapshot: &QuerySnapshot) -> Result<i64, Error> {
    check_versions(&backend)?;
    with_session(|session| ask(&mut backend, session, snapshot))
}

/// Returns whether this session shares the memory in which transactions say that they hold horizons.
fn check_versions(backend: &Backend) -> Result<(), Error> {
    if let Some(header) = attached().and_then(|attachment| attachment.other_version) {
        return Err(Error::OtherVersion { found: header.version });
    }
    segment(backend.control()).map_err(|reason| Error::NoSlotMemory { reason })?;
    Ok(())
}

/// Returns whether horizons up to an instant may have been returned.
pub fn is_announced(instant: i64) -> bool {
    super::attach::control().is_some_and(|control| instant <= control.shared.announced.load(Ordering::Acquire))
}

/// A transaction that holds horizons of this database.
pub struct OpenTransaction {
    /// The process of its session; none if it is prepared.
    pub pid: Option<i32>,
    /// The lower 32 bits of its number, if it is prepared.
    pub xid: Option<u32>,
    /// The role of its session; none if it is prepared.
    pub role: Option<pgrx::pg_sys::Oid>,
    /// At which instant it holds them.
    pub bound: i64,
}

/// Returns the transactions that hold the horizons of this database now.
pub fn open_transactions() -> Result<Vec<OpenTransaction>, Error> {
    let Some(control) = super::attach::control() else { return Ok(Vec::new()) };
    // Before the first ID there is none.
    if control.shared.sessions.load(Ordering::Acquire) == 0 && prepared::most() == 0 {
        return Ok(Vec::new());
    }
    let segment = segment(control).map_err(|reason| Error::NoSlotMemory { reason })?;
    let database = recovery::database();
    let mut open = Vec::new();
    for (number, slot) in (0..).zip(segment.slots) {
        let bound = slot.transactions.bound();
        let (pid, role) = transaction::process_of(number);
        if bound != i64::MAX && slot.transactions.database() == database && pid != 0 {
            open.push(OpenTransaction { pid: Some(pid), xid: None, role: Some(role), bound });
        }
    }
    let prepared = segment.with_prepared(control, |all| all.to_vec());
    for one in prepared.into_iter().filter(|one| one.database == database) {
        if let Some(xid) = one.xid() {
            open.push(OpenTransaction { pid: None, xid: Some(xid as u32), role: None, bound: one.bound });
        }
    }
    Ok(open)
}

/// Returns the processes of other sessions that are in a transaction in which they have made IDs, and the instant of its first
/// one: time that was granted to them before may still be used in it.
pub fn making_ids() -> Result<Vec<(i32, i64)>, Error> {
    let Some(control) = super::attach::control() else { return Ok(Vec::new()) };
    if control.shared.sessions.load(Ordering::Acquire) == 0 {
        return Ok(Vec::new());
    }
    let segment = segment(control).map_err(|reason| Error::NoSlotMemory { reason })?;
    let own = slot::numbers().0;
    let others = (0..).zip(segment.slots).filter(|(number, _)| *number != own);
    let busy = others.map(|(number, slot)| (transaction::process_of(number).0, slot.transactions.bound()));
    Ok(busy.filter(|&(pid, bound)| pid != 0 && bound != i64::MAX).collect())
}
