//! The transactions of this session, as horizons see them.

use std::cell::Cell;
use std::sync::atomic::AtomicI64;

use flake_core::horizon::prepared::Prepared;
use flake_core::horizon::{NONE, SlotTransactions};
use flake_core::ledger::host::Server;
use flake_core::ledger::protocol::{Grant, grant, take_page};

use super::attach::attached;
use super::backend::Backend;
use super::horizon::forget;
use super::segment;
use crate::error::Error;
use crate::postgres::transaction::{self, Event};
use crate::postgres::{prepared, recovery};

/// What a session that joined has of the horizons.
#[derive(Clone, Copy)]
struct Own {
    transactions: &'static SlotTransactions,
    announced: &'static AtomicI64,
}

thread_local! {
    static OWN: Cell<Option<Own>> = const { Cell::new(None) };
    /// Whether the session joined before the server was promoted, if it was.
    static JOINED_IN_RECOVERY: Cell<bool> = const { Cell::new(false) };
    /// From this instant on, readings of the clock are admitted in the present transaction.
    static ADMITTED: Cell<i64> = const { Cell::new(NONE) };
    /// The era in which this session has asked for time to cover IDs of other transactions.
    static COVERED_IN: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Has this session's transactions hold horizons from now on.
pub fn take_part(backend: &Backend) {
    // Beside another version's ledger there are no horizons.
    let transactions = backend.transactions().unwrap_or_else(|| Box::leak(Box::default()));
    transactions.begin(recovery::database());
    JOINED_IN_RECOVERY.set(recovery::is_in_progress());
    OWN.set(Some(Own { transactions, announced: &backend.control().shared.announced }));
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
    JOINED_IN_RECOVERY.get() && !recovery::is_in_progress()
}

/// Has the ledger begin anew in a session that joined before the server was promoted: the old primary may have announced
/// horizons above the time that was granted to the session.
pub fn notice_promotion(backend: &mut Backend) -> Result<(), Error> {
    if is_promoted() {
        take_page(backend)?;
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
/// The latest instant that may have been announced, or the server's error.
pub fn cover(backend: &mut Backend, instant: i64) -> Result<Result<(), i64>, Error> {
    let Some(own) = OWN.get() else { return Ok(Ok(())) };
    let floor = floor(backend)?;
    Ok(if instant < floor {
        Err(floor)
    } else if own.transactions.bound() <= instant {
        Ok(())
    } else {
        own.transactions.hold(own.announced, instant)
    })
}

/// Returns an instant above what was announced before this era. Only the page may know of that after a start, so time is asked
/// for, as the first ID does.
fn floor(backend: &mut Backend) -> Result<i64, Error> {
    if COVERED_IN.get() != Some(backend.era()) {
        let now = backend.now();
        match grant(backend, now, now.saturating_add(1), false)? {
            Grant::Window(_, era) => COVERED_IN.set(Some(era)),
            Grant::After(until) => return Ok(until),
        }
    }
    Ok(backend.lock(|state| state.ledger.map_or(i64::MIN, |ledger| ledger.floor())))
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
    ADMITTED.replace(NONE) != NONE
}

/// Has the present transaction, which is about to be prepared, hold horizons until somebody ends it.
fn prepare(own: Own) {
    let bound = own.transactions.bound();
    let Some(xid) = transaction::xid().filter(|_| bound != NONE) else { return };
    // Nothing can be prepared where there is no room for it.
    if let (Some(attachment), Some(segment)) = (attached(), segment::attached())
        && prepared::most() > 0
    {
        segment.add_prepared(attachment.control, &[Prepared::new(xid, bound, recovery::database())]);
    }
    prepared::carry(xid, bound);
}
