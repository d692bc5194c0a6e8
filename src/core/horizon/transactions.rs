//! The transactions of a session as horizons see them: which instant each holds, from its first ID to its end.
//!
//! 1. The first ID of a transaction is made at a reading of the clock that was admitted, and no ID of it below the first one's.
//! 2. An ID of another transaction is covered above the floor only, once this session's page was looked at.
//! 3. A transaction that is prepared is among the prepared ones before it leaves its slot.

use std::cell::Cell;

use super::NONE;
use super::entries::add_prepared;
use super::host::HorizonHost;
use super::prepared::Prepared;
use crate::ledger::protocol::{Grant, grant};

/// The transactions of a session, as it remembers them.
#[derive(Debug)]
pub struct SessionTransactions {
    /// From this instant on, readings of the clock are admitted in the current transaction.
    admitted: Cell<i64>,
    /// The era in which this session has asked for time to cover IDs of other transactions.
    covered_in: Cell<Option<u64>>,
    /// The last horizon of the current transaction, if that has one snapshot, after so many recalls.
    last: Cell<(u32, i64)>,
}

impl SessionTransactions {
    /// The transactions of a session that has not joined.
    pub const fn before_joining() -> Self {
        Self { admitted: Cell::new(NONE), covered_in: Cell::new(None), last: Cell::new((0, i64::MIN)) }
    }

    /// From now on, the session's transactions hold horizons.
    pub fn take_part<H: HorizonHost>(&self, host: &H) {
        if let Some(own) = host.own() {
            own.begin(host.database());
        }
    }

    /// Returns whether IDs of ticks that end after `now`, a fresh reading of the clock, were admitted in the current transaction.
    #[inline]
    pub fn has_admitted(&self, now: i64) -> bool {
        now >= self.admitted.get()
    }

    /// Admits IDs of ticks that end after `now`, a fresh reading of the clock, in the current transaction.
    ///
    /// # Errors
    /// The instant to wait for.
    pub fn admit<H: HorizonHost>(&self, host: &H, now: i64) -> Result<(), i64> {
        if self.has_admitted(now) {
            return Ok(());
        }
        let Some(own) = host.own() else { return Ok(()) };
        own.admit(&host.shared().announced, now, || host.point("published"))?;
        self.admitted.set(now);
        Ok(())
    }

    /// Makes the current transaction hold horizons at an instant or below, unless a later one may have been announced: then it
    /// returns the latest that may have been.
    pub fn cover<H: HorizonHost>(&self, host: &mut H, instant: i64) -> Result<Result<(), i64>, H::Error> {
        let floor = self.floor(host)?;
        if instant < floor {
            return Ok(Err(floor));
        }
        let Some(own) = host.own() else { return Ok(Ok(())) };
        Ok(if own.bound() <= instant {
            Ok(())
        } else {
            own.hold(&host.shared().announced, instant, || host.point("published"))
        })
    }

    /// Returns an instant above what was announced before this era. Only the page may know of that after a start, so time is
    /// asked for, as the first ID does.
    fn floor<H: HorizonHost>(&self, host: &mut H) -> Result<i64, H::Error> {
        if self.covered_in.get() != Some(host.shared().window.era()) {
            let now = host.now();
            match grant(host, now, now.saturating_add(1), false)? {
                Grant::Window(_, era) => self.covered_in.set(Some(era)),
                Grant::After(until) => return Ok(until),
            }
        }
        Ok(host.lock(|state| state.ledger.map_or(i64::MIN, |ledger| ledger.floor)))
    }

    /// The statements of a transaction that has one snapshot have copies of it, and what is kept for it becomes less. A horizon
    /// from before a recall does not count.
    pub(super) fn not_before_the_last(&self, horizon: i64, recalls: u32) -> i64 {
        let (before, last) = self.last.get();
        let counts = before == recalls;
        let horizon = if counts { last.max(horizon) } else { horizon };
        self.last.set((recalls, horizon));
        horizon
    }

    /// Makes the current transaction, which is about to be prepared and has this number, hold horizons until it is committed or
    /// rolled back, by whichever session.
    pub fn prepare<H: HorizonHost>(&self, host: &H, xid: Option<u64>) {
        let bound = host.own().map_or(NONE, |own| own.bound());
        let Some(xid) = xid.filter(|_| bound != NONE) else { return };
        // Nothing can be prepared where there is no room for it.
        if host.most_prepared() > 0 {
            add_prepared(host, &[Prepared::new(xid, bound, host.database())]);
        }
        host.carry(xid, bound);
    }

    /// The current transaction has ended, and new snapshots see that; `committed` is its number if it has committed and has one.
    /// Returns whether it had made IDs.
    #[inline]
    pub fn end<H: HorizonHost>(&self, host: &H, committed: Option<u64>) -> bool {
        if let Some(own) = host.own() {
            own.end(committed, || host.point("kept"));
        }
        self.last.set((0, i64::MIN));
        self.admitted.replace(NONE) != NONE
    }
}
