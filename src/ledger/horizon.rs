//! The horizon of a query: announced to everybody, then the least bound of what the query's snapshot sees as running.

use std::cell::Cell;
use std::sync::atomic::{Ordering, fence};

use flake_core::horizon::prepared::{Prepared, holds};
use flake_core::horizon::{Snapshot, widened};
use flake_core::ledger::host::Server;
use flake_core::ledger::protocol;

use super::attach::attached;
use super::backend::Backend;
use super::control::Control;
use super::segment::{Segment, segment};
use crate::error::Error;
use crate::postgres::{prepared, recovery, slot, snapshot, transaction};

thread_local! {
    /// The last horizon of the present transaction, if that has one snapshot, after so many recalls.
    static LAST: Cell<(u32, i64)> = const { Cell::new((0, i64::MIN)) };
}

/// Returns whether this session may ask for horizons.
pub fn check() -> Result<(), Error> {
    if recovery::is_in_progress() {
        return Err(Error::HorizonInRecovery);
    }
    // A worker has a copy of its leader's snapshot without the note, and could answer otherwise than the leader.
    if transaction::is_in_worker() { Err(Error::HorizonInWorker) } else { Ok(()) }
}

/// Returns an instant below which no ID can appear any more in what this query or a later one sees.
pub fn horizon(mut backend: Backend) -> Result<i64, Error> {
    let snapshot = snapshot::of_query().ok_or(Error::NoQuerySnapshot)?;
    if let Some(known) = snapshot.note() {
        return Ok(known);
    }
    if let Some(header) = attached().and_then(|attachment| attachment.foreign) {
        return Err(Error::OtherVersion { found: header.version });
    }
    let control = backend.control();
    let segment = segment(control).map_err(|reason| Error::NoSlotMemory { reason })?;
    let transactions = snapshot.transactions();
    // The ledger has begun when this session joined.
    if prepared::most() > 0 {
        learn_prepared(control, segment);
        check_learned(control, segment, &transactions)?;
    }
    let recalls = control.shared.recalls.load(Ordering::SeqCst);
    let announced = announce(&mut backend)?;
    let horizon = scan(control, segment, &transactions)?.min(announced);
    let horizon = if snapshot.is_of_transaction() { not_before_the_last(horizon, recalls) } else { horizon };
    snapshot.set_note(horizon);
    Ok(horizon)
}

/// The statements of a transaction that has one snapshot have copies of it, and what is kept for it becomes less. A horizon from
/// before a recall does not count.
fn not_before_the_last(horizon: i64, recalls: u32) -> i64 {
    let (before, last) = LAST.get();
    let counts = before == recalls;
    let horizon = if counts { last.max(horizon) } else { horizon };
    LAST.set((recalls, horizon));
    horizon
}

/// Forgets the horizon of a transaction that has ended.
pub fn forget() {
    LAST.set((0, i64::MIN));
}

/// Returns whether horizons up to an instant may have been returned.
pub fn is_announced(instant: i64) -> bool {
    super::attach::control().is_some_and(|control| instant <= control.shared.announced.load(Ordering::Acquire))
}

/// Announces the clock: no ID is made below any more, by no session of this server, nor after it has crashed, nor by a server
/// that continues from its WAL.
fn announce(backend: &mut Backend) -> Result<i64, Error> {
    let now = protocol::bind(backend)?;
    let before = backend.shared().announced.fetch_max(now, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    backend.point("announced");
    Ok(now.max(before))
}

/// Returns the least bound of the transactions that have not ended for a snapshot. The clock has been announced.
fn scan(control: &Control, segment: Segment, snapshot: &Snapshot<'_>) -> Result<i64, Error> {
    if control.header.foreign_sessions.load(Ordering::SeqCst) > 0 {
        return Err(Error::ForeignSessions);
    }
    let database = recovery::database();
    let mut least = i64::MAX;
    for slot in segment.slots {
        let holds = loop {
            match slot.transactions.holds(snapshot, database) {
                Some(holds) => break holds,
                // Its owner was stopped at an unlucky moment.
                None => transaction::nap(),
            }
        };
        least = least.min(holds);
    }
    crate::postgres::stall::at("slots read");
    // After the slots: a transaction that is prepared is there before it leaves its slot.
    if control.prepared.load(Ordering::SeqCst) > 0 {
        least = least.min(segment.with_prepared(control, |all| holds(all, snapshot, database)));
    }
    Ok(least)
}

/// Learns, once after each server start, which transactions were prepared before.
fn learn_prepared(control: &Control, segment: Segment) {
    if control.prepared_are_known.load(Ordering::Acquire) {
        return;
    }
    let carried = prepared::carried();
    // Read after the locks, so that it is greater than the numbers in them.
    let next = transaction::next_xid();
    let of = |(xid, bound)| Prepared::new(widened(next, xid), bound, prepared::database_of(xid));
    let carried: Vec<_> = carried.into_iter().map(of).collect();
    segment.add_prepared(control, &carried);
    control.prepared_are_known.store(true, Ordering::Release);
}

/// Checks that a snapshot sees no transaction as running that may have been prepared before this server start, and was committed
/// before anybody had learned of it.
fn check_learned(control: &Control, segment: Segment, snapshot: &Snapshot<'_>) -> Result<(), Error> {
    let first = control.with_lock(|guarded| guarded.state.first_xid);
    if snapshot.xmin >= first {
        return Ok(());
    }
    let has_committed = |xid: &u32| !transaction::is_running(*xid) && transaction::has_committed(*xid);
    let committed: Vec<u64> = snapshot.running_before(first).filter(|&xid| has_committed(&(xid as u32))).collect();
    let is_known = |all: &[Prepared], xid| all.iter().any(|one| one.xid() == Some(xid));
    let are_known = || segment.with_prepared(control, |all| committed.iter().all(|&xid| is_known(all, xid)));
    if committed.is_empty() || are_known() { Ok(()) } else { Err(Error::HorizonNotYet) }
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
    let prepared = segment.with_prepared(control, <[_]>::to_vec);
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
