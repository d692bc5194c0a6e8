//! The horizon of a query: announced to everybody, then the least bound of what the query's snapshot sees as running.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use flake_core::horizon::Snapshot;
use flake_core::horizon::detached::{self, Detached, Identity};
use flake_core::resume::{Grant, LedgerAccess};
use flake_core::timeline::MARGIN;
use flake_core::{Node, absent};

use super::access::SharedLedger;
use super::attach::{Attachment, attached};
use super::control::Control;
use super::mark_page;
use super::membership::join;
use super::open::open;
use super::segment::{Segment, segment};
use crate::clock;
use crate::error::Error;
use crate::postgres::snapshot::{self, QuerySnapshot};
use crate::postgres::{prepared, recovery, transaction};

thread_local! {
    /// The node in force, which stays the same until the server stops.
    static NODE: Cell<Option<Node>> = const { Cell::new(None) };
    /// The last answer, and how many transactions had ended for its snapshot. What was a horizon remains one for all later
    /// snapshots.
    static LAST: Cell<(u64, i64)> = const { Cell::new((0, i64::MIN)) };
}

/// Returns an instant below which no ID can appear any more in what this query or a later one sees.
pub fn horizon() -> Result<i64, Error> {
    if recovery::is_in_progress() {
        return Err(Error::HorizonInRecovery);
    }
    // A worker has a copy of its leader's snapshot without the note, and could answer otherwise than the leader.
    if transaction::is_in_worker() {
        return Err(Error::HorizonInWorker);
    }
    let snapshot = snapshot::of_query().ok_or(Error::NoQuerySnapshot)?;
    if let Some(known) = snapshot.note() {
        return Ok(known);
    }
    let node = NODE.get().map_or_else(|| join(0), Ok)?;
    let control = match attached() {
        Attachment::Ledger(control, _) => control,
        Attachment::Foreign(header) => return Err(Error::OtherVersion { found: header.version }),
        Attachment::Unknown => unreachable!("the session has just joined"),
    };
    NODE.set(Some(node));
    open(control, node)?;
    let segment = segment(control).map_err(|reason| Error::NoSlotMemory { reason })?;
    learn_prepared(control, segment, &snapshot)?;
    let announced = announce(control, &SharedLedger { function: c"flake_horizon()", node })?;
    let own = scan(control, segment, &snapshot.transactions())?.min(announced);
    let horizon = not_before_the_last(snapshot.completions(), own, control.announced.load(Ordering::Acquire));
    snapshot.set_note(horizon);
    Ok(horizon)
}

/// One snapshot must not have two horizons, and what is kept for it becomes less. What exceeds the `announced` instant was
/// announced before somebody accepted a clock that is behind.
fn not_before_the_last(completions: u64, horizon: i64, announced: i64) -> i64 {
    let (last_completions, last) = LAST.get();
    if completions == 0 || completions < last_completions {
        return horizon;
    }
    let horizon = if last <= announced { horizon.max(last) } else { horizon };
    LAST.set((completions, horizon));
    horizon
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
    control.announced.fetch_max(now, Ordering::SeqCst);
    std::sync::atomic::fence(Ordering::SeqCst);
    flake_core::absence::stall();
    Ok(now.max(known))
}

/// Returns the least bound of the transactions that have not ended for a snapshot. The clock has been announced.
fn scan(control: &Control, segment: Segment, snapshot: &Snapshot<'_>) -> Result<i64, Error> {
    if !absent!(HorizonUnpublished) {
        // In this order: who leaves says until when it counts before it does not.
        let is_any = control.unpublished.load(Ordering::SeqCst) > 0;
        if is_any || snapshot.xmin < control.unpublished_until.load(Ordering::SeqCst) {
            return Err(Error::UnpublishedSessions);
        }
        if control.header.foreign_sessions.load(Ordering::SeqCst) > 0 {
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
            settle(control, all);
            detached::holds(used(control, all), snapshot, database)
        };
        least = least.min(segment.with_detached(control, of_detached));
    }
    Ok(least)
}

fn used<'a>(control: &Control, all: &'a mut [Detached]) -> &'a mut [Detached] {
    let count = control.detached.load(Ordering::SeqCst) as usize;
    &mut all[..count]
}

fn settle(control: &Control, all: &mut [Detached]) {
    let is_running = |slot, number| transaction::local(slot, number).0;
    detached::settle(used(control, all), is_running, transaction::next_xid);
}

/// Learns, once after each server start, which transactions were prepared before.
fn learn_prepared(control: &Control, segment: Segment, snapshot: &QuerySnapshot) -> Result<(), Error> {
    if control.prepared_are_known.load(Ordering::Acquire) || prepared::most() == 0 || absent!(HorizonRebuilt) {
        return Ok(());
    }
    let next = transaction::next_xid();
    let carried = prepared::carried();
    segment.with_detached(control, |all| {
        for (xid, bound) in carried {
            let xid = flake_core::horizon::widened(next, xid);
            let new = Detached { identity: Identity::Xid(xid), bound, database: 0 };
            let is_running = |xid| transaction::is_running(xid as u32);
            if let Some(index) = detached::add(all, new, transaction::oldest_xid, is_running, next) {
                control.detached.fetch_max(index as u32 + 1, Ordering::SeqCst);
            }
        }
    });
    control.prepared_are_known.store(true, Ordering::Release);
    // One that the snapshot sees as running may have been committed before its lock was looked for.
    let has_just_committed = |&xid: &u32| !transaction::is_running(xid) && transaction::has_committed(xid);
    match snapshot.transactions().running.iter().any(has_just_committed) {
        true => Err(Error::HorizonNotYet),
        false => Ok(()),
    }
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
            Identity::Xid(xid) => (None, Some(xid as u32)),
            Identity::Local { slot, number } => match transaction::local(slot, number) {
                (true, pid) => (Some(pid), None),
                _ => continue,
            },
            Identity::Free | Identity::EndedBefore(_) => continue,
        };
        open.push(OpenTransaction { pid, xid, bound });
    }
    Ok(open)
}
