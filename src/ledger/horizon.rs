//! The horizon of a query: announced to everybody, then the least bound of what the query's snapshot sees as running.

use std::cell::Cell;
use std::sync::atomic::{Ordering, fence};

use flake_core::horizon::detached::{self, Detached, Identity};
use flake_core::horizon::{Snapshot, widened};
use flake_core::resume::{Grant, LedgerAccess};
use flake_core::timeline::MARGIN;
use flake_core::{Node, absent};

use super::access::SharedLedger;
use super::attach::{Attachment, attached};
use super::control::Control;
use super::mark_page;
use super::open::open;
use super::segment::{Segment, segment};
use crate::clock;
use crate::error::Error;
use crate::postgres::snapshot;
use crate::postgres::transaction::{self, OfServer};
use crate::postgres::{prepared, recovery};

thread_local! {
    /// The last horizon of the present transaction, if that has one snapshot, after so many recalls.
    static LAST: Cell<(u32, i64)> = const { Cell::new((0, i64::MIN)) };
}

/// Returns whether this session may ask for horizons.
pub fn check() -> Result<(), Error> {
    if recovery::is_in_progress() && !absent!(HorizonInRecovery) {
        return Err(Error::HorizonInRecovery);
    }
    // A worker has a copy of its leader's snapshot without the note, and could answer otherwise than the leader.
    if transaction::is_in_worker() && !absent!(HorizonInWorker) { Err(Error::HorizonInWorker) } else { Ok(()) }
}

/// Returns an instant below which no ID can appear any more in what this query or a later one sees. `node` is what the session
/// got when it joined.
pub fn horizon(node: Node) -> Result<i64, Error> {
    let snapshot = snapshot::of_query().ok_or(Error::NoQuerySnapshot)?;
    if let Some(known) = snapshot.note() {
        return Ok(known);
    }
    let control = match attached() {
        Attachment::Ledger(control, _) => control,
        Attachment::Foreign(header) => return Err(Error::OtherVersion { found: header.version }),
        Attachment::Unknown => unreachable!("the session has just joined"),
    };
    open(control, node)?;
    let segment = segment(control).map_err(|reason| Error::NoSlotMemory { reason })?;
    let transactions = snapshot.transactions();
    if prepared::most() > 0 && !absent!(HorizonRebuilt) {
        learn_prepared(control, segment)?;
        if !absent!(HorizonLearned) {
            check_learned(control, segment, &transactions)?;
        }
    }
    let recalls = control.recalls.load(Ordering::SeqCst);
    let announced = announce(control, &SharedLedger { function: c"flake_horizon()", node })?;
    let horizon = not_before_the_last(scan(control, segment, &transactions)?.min(announced), recalls);
    snapshot.set_note(horizon);
    Ok(horizon)
}

/// The statements of a transaction that has one snapshot have copies of it, and what is kept for it becomes less. A horizon from
/// before a recall does not count.
fn not_before_the_last(horizon: i64, recalls: u32) -> i64 {
    if !transaction::has_one_snapshot() || absent!(HorizonLast) {
        return horizon;
    }
    let (before, last) = LAST.get();
    let counts = before == recalls || absent!(HorizonRecalled);
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
    super::attach::control().is_some_and(|control| instant <= control.announced.load(Ordering::Acquire))
}

/// Announces the clock: no ID is made below any more, by no session of this server, nor after it has crashed, nor by a server
/// that continues from its WAL.
fn announce(control: &Control, ledger: &SharedLedger) -> Result<i64, Error> {
    let known = control.announced.load(Ordering::Acquire);
    let mut now = clock::now();
    if !absent!(HorizonDurable) {
        let grant = ledger.grant(now, now.saturating_add(1), false)?;
        let (window, _) = control.window();
        // Time that a clock which was ahead has used is no time for IDs, and may be after the next start.
        if let Grant::After(_) = grant {
            now = now.min(window.until);
        }
        let mark = window.until.max(known).saturating_add(MARGIN);
        if !absent!(HorizonPage) {
            mark_page::bind(control, ledger.node, mark)?;
        }
    }
    let before = control.announced.fetch_max(now, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    flake_core::absence::stall();
    Ok(now.max(before))
}

/// Returns the least bound of the transactions that have not ended for a snapshot. The clock has been announced.
fn scan(control: &Control, segment: Segment, snapshot: &Snapshot<'_>) -> Result<i64, Error> {
    if !absent!(HorizonUnpublished) {
        // In this order: who leaves says until when it counts before it does not.
        let is_any = control.unpublished.load(Ordering::SeqCst) > 0;
        let is_left = snapshot.xmin < control.unpublished_until.load(Ordering::SeqCst) && !absent!(HorizonLeft);
        if is_any || is_left {
            return Err(Error::UnpublishedSessions);
        }
        if control.header.foreign_sessions.load(Ordering::SeqCst) > 0 && !absent!(HorizonForeign) {
            return Err(Error::ForeignSessions);
        }
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
    // After the slots: a transaction that is prepared is there before it leaves its slot.
    if Segment::has_detached(control) {
        let of_detached = |all: &mut [Detached]| {
            let used = used(control, all);
            detached::settle(used, &OfServer);
            detached::holds(used, snapshot, database)
        };
        least = least.min(segment.with_detached(control, of_detached));
    }
    Ok(least)
}

fn used<'a>(control: &Control, all: &'a mut [Detached]) -> &'a mut [Detached] {
    let count = control.detached.load(Ordering::SeqCst) as usize;
    &mut all[..count]
}

/// Learns, once after each server start, which transactions were prepared before.
fn learn_prepared(control: &Control, segment: Segment) -> Result<(), Error> {
    if control.prepared_are_known.load(Ordering::Acquire) {
        return Ok(());
    }
    let carried = prepared::carried();
    // Read after the locks, so that it is greater than the numbers in them.
    let next = transaction::next_xid();
    let carried: Vec<_> = carried.into_iter().map(|(xid, bound)| (xid, bound, prepared::database_of(xid))).collect();
    let is_complete = segment.with_detached(control, |all| {
        carried.iter().all(|&(xid, bound, database)| {
            let new = Detached { identity: Identity::Xid(widened(next, xid)), bound, database };
            add_detached(control, all, new)
        })
    });
    if !is_complete {
        return Err(Error::TooManyDetached);
    }
    control.prepared_are_known.store(true, Ordering::Release);
    Ok(())
}

/// Checks that a snapshot sees no transaction as running that may have been prepared before this server start, and was committed
/// before anybody had learned of it.
fn check_learned(control: &Control, segment: Segment, snapshot: &Snapshot<'_>) -> Result<(), Error> {
    let first = control.first_xid.load(Ordering::Acquire);
    if snapshot.xmin >= first {
        return Ok(());
    }
    let has_committed = |xid: &u32| !transaction::is_running(*xid) && transaction::has_committed(*xid);
    let committed: Vec<u64> = snapshot.running_before(first).filter(|&xid| has_committed(&(xid as u32))).collect();
    let is_known = |all: &[Detached], xid| all.iter().any(|detached| detached.identity == Identity::Xid(xid));
    let are_known = || segment.with_detached(control, |all| committed.iter().all(|&xid| is_known(all, xid)));
    if committed.is_empty() || are_known() { Ok(()) } else { Err(Error::HorizonNotYet) }
}

/// Adds a transaction that has no slot; returns false if there is no room. The caller has the lock.
pub fn add_detached(control: &Control, all: &mut [Detached], new: Detached) -> bool {
    let index = detached::add(all, new, &OfServer);
    if let Some(index) = index {
        control.detached.fetch_max(index as u32 + 1, Ordering::SeqCst);
    }
    index.is_some()
}

/// A transaction that holds horizons of this database.
pub struct OpenTransaction {
    /// The process of its session; none if it is prepared.
    pub pid: Option<i32>,
    /// The lower 32 bits of its number, if it is prepared.
    pub xid: Option<u32>,
    /// At which instant it holds them.
    pub bound: i64,
}

/// Returns the transactions that hold the horizons of this database now.
pub fn open_transactions() -> Result<Vec<OpenTransaction>, Error> {
    let Some(control) = super::attach::control() else { return Ok(Vec::new()) };
    // Before the first ID there is none.
    if control.segment.load(Ordering::Acquire) == 0 && prepared::most() == 0 {
        return Ok(Vec::new());
    }
    let segment = segment(control).map_err(|reason| Error::NoSlotMemory { reason })?;
    let database = recovery::database();
    let mut open = Vec::new();
    for (number, slot) in (0..).zip(segment.slots) {
        let bound = slot.transactions.bound();
        let pid = transaction::process_of(number);
        if bound != i64::MAX && slot.transactions.database() == database && pid != 0 {
            open.push(OpenTransaction { pid: Some(pid), xid: None, bound });
        }
    }
    let of_detached = segment.with_detached(control, |all| used(control, all).to_vec());
    for Detached { identity, bound, .. } in of_detached.into_iter().filter(|one| [0, database].contains(&one.database))
    {
        let (pid, xid) = match identity {
            Identity::Xid(xid) => match transaction::process_with(xid as u32, segment.slots.len() as u32) {
                None => (None, Some(xid as u32)),
                pid => (pid, None),
            },
            Identity::Local { slot, number } => match transaction::local(slot, number) {
                (true, pid) => (Some(pid), None),
                _ => continue,
            },
            Identity::Free | Identity::Ended { .. } => continue,
        };
        open.push(OpenTransaction { pid, xid, bound });
    }
    Ok(open)
}
