//! The transactions of this session, as horizons see them.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering, fence};

use flake_core::horizon::detached::{Detached, Identity};
use flake_core::horizon::{NONE, SlotTransactions};
use flake_core::{Node, absent};

use super::attach::{self, Attachment, attached};
use super::control::Control;
use super::horizon::{add_detached, forget};
use super::open::open;
use super::segment::{self, Segment};
use crate::error::Error;
use crate::postgres::transaction::{self, Event};
use crate::postgres::{prepared, recovery, slot};

/// What a session that joined has of the horizons.
#[derive(Clone, Copy)]
struct Own {
    transactions: &'static SlotTransactions,
    announced: &'static AtomicI64,
    /// A parallel worker's IDs count for its leader.
    is_worker: bool,
    /// Whether others can see its transactions.
    is_published: bool,
}

thread_local! {
    static OWN: Cell<Option<Own>> = const { Cell::new(None) };
    /// Whether the session joined before the server was promoted, if it was.
    static JOINED_IN_RECOVERY: Cell<bool> = const { Cell::new(false) };
    /// From this instant on, readings of the clock are admitted in the present transaction.
    static ADMITTED: Cell<i64> = const { Cell::new(NONE) };
}

/// Has this session's transactions hold horizons from now on. `segment` is none where there is no memory for its slot; then
/// there are no horizons as long as its transactions may hold one.
pub fn take_part(control: Option<&'static Control>, segment: Option<Segment>) {
    static NEVER: AtomicI64 = AtomicI64::new(i64::MIN);
    let transactions = match segment {
        Some(segment) => &segment.slots[slot::numbers().0 as usize].transactions,
        None => Box::leak(Box::default()),
    };
    if segment.is_none()
        && let Some(control) = control
    {
        control.unpublished.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
    transactions.begin(recovery::database());
    let announced = control.map_or(&NEVER, |control| &control.announced);
    JOINED_IN_RECOVERY.set(recovery::is_in_progress());
    let is_worker = transaction::is_in_worker() && !absent!(HorizonWorkers);
    OWN.set(Some(Own { transactions, announced, is_worker, is_published: segment.is_some() }));
}

/// Returns whether IDs of ticks that end after `now` may be made in the present transaction, without asking anything that
/// could raise an error. `now` has to be a fresh reading of the clock.
#[inline]
pub fn admits(now: i64) -> bool {
    now >= ADMITTED.get() || begin(now)
}

#[inline(never)]
fn begin(now: i64) -> bool {
    match OWN.get() {
        Some(own) if !own.is_worker && !is_promoted() => admit_own(own, now).is_ok(),
        _ => false,
    }
}

/// Returns whether the server was promoted since this session joined.
fn is_promoted() -> bool {
    JOINED_IN_RECOVERY.get() && !recovery::is_in_progress() && !absent!(HorizonPromoted)
}

/// Has the ledger opened again in a session that joined before the server was promoted: the old primary may have announced
/// horizons above the time that was granted to the session.
pub fn notice_promotion(node: Node) -> Result<(), Error> {
    if is_promoted() {
        if let Attachment::Ledger(control, _) = attached() {
            open(control, node)?;
        }
        JOINED_IN_RECOVERY.set(false);
    }
    Ok(())
}

fn admit_own(own: Own, now: i64) -> Result<(), i64> {
    own.transactions.admit(own.announced, now)?;
    ADMITTED.set(now);
    Ok(())
}

/// Admits IDs of ticks that end after `now`, a fresh reading of the clock, in the present transaction.
///
/// # Errors
/// The instant to wait for.
pub fn admit(now: i64) -> Result<(), i64> {
    if now >= ADMITTED.get() {
        return Ok(());
    }
    match OWN.get() {
        Some(own) if own.is_worker => admit_for_leader(own, now),
        Some(own) => admit_own(own, now),
        None => Ok(()),
    }
}

/// The leader may know nothing of its workers' IDs, and they may have ended before it does.
fn admit_for_leader(own: Own, now: i64) -> Result<(), i64> {
    let known = own.announced.load(Ordering::Acquire);
    if now < known {
        return Err(known);
    }
    // The transaction may get its number later; and then the leader knows what the worker does not.
    let local = |(slot, number)| Identity::Local { slot, number };
    if let Some(identity) = transaction::xid().map(Identity::Xid).or_else(|| transaction::of_leader().map(local)) {
        detach(identity, now);
        fence(Ordering::SeqCst);
        let known = own.announced.load(Ordering::SeqCst);
        if now < known {
            return Err(known);
        }
    }
    ADMITTED.set(now);
    Ok(())
}

/// Adds a transaction that has no slot. Without memory for slots, there is no horizon that it could hold.
fn detach(identity: Identity, bound: i64) {
    let (Attachment::Ledger(control, _), Some(segment)) = (attached(), segment::attached()) else { return };
    let new = Detached { identity, bound, database: recovery::database() };
    if !segment.with_detached(control, |all| add_detached(control, all, new)) {
        crate::error::raise(Error::TooManyDetached);
    }
}

/// Has the present transaction hold horizons at an instant or below, unless a later one may have been announced.
///
/// # Errors
/// The latest instant that may have been announced.
pub fn cover(instant: i64) -> Result<(), i64> {
    let Some(own) = OWN.get() else { return Ok(()) };
    // The floor is above what was announced before the start of the server.
    if let Attachment::Ledger(control, _) = attached()
        && let Some(floor) = control.ledger().map(|ledger| ledger.floor())
        && instant < floor
        && !absent!(CoverFloor)
    {
        return Err(floor);
    }
    if own.transactions.bound() <= instant { Ok(()) } else { own.transactions.hold(own.announced, instant) }
}

/// What is to be done when a transaction of this session ends. Returns whether it has ended and had made IDs.
#[inline]
pub fn end(event: Event) -> bool {
    if event == Event::WillPrepare {
        prepare();
        return false;
    }
    let Some(own) = OWN.get() else { return false };
    match event {
        Event::LeftByWorker if absent!(HorizonWorkers) => own.transactions.end(None),
        Event::Committed => own.transactions.end(transaction::xid()),
        Event::Left => own.transactions.end(None),
        Event::WillPrepare | Event::LeftByWorker => {}
    }
    forget();
    ADMITTED.replace(NONE) != NONE && !absent!(HorizonReading)
}

/// Has the present transaction, which is about to be prepared, hold horizons until somebody ends it. This session may know nothing
/// of IDs that only its workers have made.
fn prepare() {
    let Some(xid) = transaction::xid().filter(|_| !absent!(HorizonPrepared)) else { return };
    let bound = OWN.get().map_or(NONE, |own| own.transactions.bound()).min(bound_of_workers(xid));
    if bound != NONE {
        detach(Identity::Xid(xid), bound);
        prepared::carry(xid, bound);
    }
}

/// Returns the bound of the IDs that this transaction's workers have made, or [`NONE`].
fn bound_of_workers(xid: u64) -> i64 {
    let Some(control) = attach::control().filter(|control| Segment::has_detached(control)) else { return NONE };
    let Ok(segment) = segment::segment(control) else { return NONE };
    let (slot, number) = transaction::own();
    let own = [Identity::Xid(xid), Identity::Local { slot, number }];
    segment.with_detached(control, |all| {
        all.iter()
            .filter(|detached| own.contains(&detached.identity))
            .map(|detached| detached.bound)
            .min()
            .unwrap_or(NONE)
    })
}

/// Notes that this session has made its last ID, at exit. Its last transaction may have to be rolled back yet.
pub fn leave(control: &Control) {
    if OWN.get().is_some_and(|own| !own.is_published) {
        // Snapshots that see all before this one as ended see its own as ended.
        control.unpublished_until.fetch_max(transaction::next_xid(), Ordering::SeqCst);
        control.unpublished.fetch_sub(1, Ordering::SeqCst);
    }
}
