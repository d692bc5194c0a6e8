//! This session as a user of the ledger: it joins before its first generator begins, its transactions hold watermarks from then on, and
//! it leaves at exit.

use std::cell::Cell;

use flake_core::ledger::time::begin as beginning;
use flake_core::watermark::transactions::SessionTransactions;

use super::backend::Backend;
use crate::error::Error;
use crate::postgres::transaction::{self, Event};

thread_local! {
    static SESSION: SessionTransactions = const { SessionTransactions::before_joining() };
    /// Set when this session joins the ledger.
    static JOINED_BACKEND: Cell<Option<Backend>> = const { Cell::new(None) };
}

/// Calls `act` with the state of this session's transactions.
pub fn with_session<R>(act: impl FnOnce(&SessionTransactions) -> R) -> R {
    SESSION.with(act)
}

/// Counts this session as a user of the ledger, unless it is counted already.
pub fn join() -> Result<Backend, Error> {
    if let Some(own) = JOINED_BACKEND.get() {
        return Ok(own);
    }
    let mut own = Backend::new()?;
    beginning::join(&mut own)?;
    with_session(|session| session.take_part(&own));
    JOINED_BACKEND.set(Some(own));
    Ok(own)
}

/// Counts this session no longer, at exit.
pub fn leave() {
    if let Some(own) = JOINED_BACKEND.get() {
        beginning::leave(&own);
    }
}

/// Returns whether the current transaction may make IDs of ticks that end after `now`, flake's time in an era, without a call that can
/// raise an error. `now` must be a fresh reading.
#[inline]
pub fn admits(era: u64, now: i64) -> bool {
    SESSION.with(|session| session.has_admitted(now)) || begin(era, now)
}

#[inline(never)]
fn begin(era: u64, now: i64) -> bool {
    JOINED_BACKEND.get().is_some_and(|own| with_session(|session| session.admit(&own, era, now).is_ok()))
}

/// Lets the current transaction make IDs of ticks that end after `now`, flake's time in an era.
///
/// # Errors
/// An announced watermark that is later.
pub fn admit(era: u64, now: i64) -> Result<(), i64> {
    JOINED_BACKEND.get().map_or(Ok(()), |own| with_session(|session| session.admit(&own, era, now)))
}

/// Makes the current transaction hold watermarks at an instant or below. If a later watermark may have been announced, it does not, and
/// returns the latest one that may have been.
pub fn cover(own: &mut Backend, instant: i64) -> Result<Option<i64>, Error> {
    with_session(|session| session.cover(own, instant))
}

/// Handles the end of a transaction of this session. Returns whether it has ended and had made IDs.
#[inline]
pub fn end_transaction(event: Event) -> bool {
    let Some(own) = JOINED_BACKEND.get() else { return false };
    with_session(|session| {
        if matches!(event, Event::Left | Event::LeftInPart) {
            session.invalidate_page();
        }
        match event {
            Event::WillPrepare => {
                session.prepare(&own, transaction::xid());
                false
            }
            Event::Committed => session.end(&own, transaction::xid()),
            Event::Left => session.end(&own, None),
            Event::LeftInPart => false,
        }
    })
}
