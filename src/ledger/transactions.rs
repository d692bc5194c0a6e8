//! The transactions of this session, as horizons see them.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering, fence};

use flake_core::horizon::prepared::Prepared;
use flake_core::horizon::{NONE, SlotTransactions};
use flake_core::{Node, absent};

use super::attach::{Attachment, attached};
use super::control::Control;
use super::horizon::forget;
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
    OWN.set(Some(Own { transactions, announced, is_published: segment.is_some() }));
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
        Some(own) if !is_promoted() => admit_own(own, now).is_ok(),
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
        Some(own) => admit_own(own, now),
        None => Ok(()),
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
    let Some(own) = OWN.get() else { return false };
    match event {
        Event::WillPrepare => {
            prepare(own);
            return false;
        }
        Event::Committed => own.transactions.end(transaction::xid()),
        Event::Left => own.transactions.end(None),
    }
    forget();
    ADMITTED.replace(NONE) != NONE && !absent!(HorizonReading)
}

/// Has the present transaction, which is about to be prepared, hold horizons until somebody ends it.
fn prepare(own: Own) {
    let bound = own.transactions.bound();
    let Some(xid) = transaction::xid().filter(|_| bound != NONE && !absent!(HorizonPrepared)) else { return };
    // Without memory for its slot, there is no horizon that it could hold. Nor can it be prepared where none can.
    if let (Attachment::Ledger(control, _), Some(segment)) = (attached(), segment::attached())
        && prepared::most() > 0
    {
        segment.add_prepared(control, &[Prepared::new(xid, bound, recovery::database())]);
    }
    prepared::carry(xid, bound);
}

/// Notes that this session has made its last ID, at exit. Its last transaction may have to be rolled back yet.
pub fn leave(control: &Control) {
    if OWN.get().is_some_and(|own| !own.is_published) {
        // Snapshots that see all before this one as ended see its own as ended.
        control.unpublished_until.fetch_max(transaction::next_xid(), Ordering::SeqCst);
        control.unpublished.fetch_sub(1, Ordering::SeqCst);
    }
}
