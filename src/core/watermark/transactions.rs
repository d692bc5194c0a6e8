//! The transactions of a session: at which instant each of them holds watermarks, from its first ID to its end.
//!
//! 1. The first ID of a transaction is made at an admitted reading of the clock, and none of its later IDs lies below that.
//! 2. An ID of another transaction can be covered only above the floor of the era, after this session has read its page. The era is
//!    compared after the bound is published.
//! 3. A bound counts in later eras only if its era was still in force when it had been published: otherwise, a watermark of the next
//!    generation may have been announced before.
//! 4. A transaction that is prepared is among the prepared ones before it leaves its proc.

use std::cell::Cell;

use super::NONE;
use super::host::WatermarkHost;
use super::prepared::Prepared;
use crate::instant::MIN_INSTANT;
use crate::ledger::durable::page::ensure_page_current;

/// The session's memory of its transactions.
#[derive(Debug)]
pub struct SessionTransactions {
    /// Readings of flake's time from this instant on are admitted in the current transaction, because its bound counts.
    admitted: Cell<i64>,
    /// The era in which this session has read the page to cover IDs of other transactions.
    page_read_era: Cell<Option<u64>>,
    /// The era and the last watermark of the current transaction if its statements share a snapshot.
    last: Cell<(u64, i64)>,
}

impl SessionTransactions {
    /// The state before the session joins the ledger.
    pub const fn before_joining() -> Self {
        Self { admitted: Cell::new(NONE), page_read_era: Cell::new(None), last: Cell::new((0, MIN_INSTANT)) }
    }

    /// Makes the session's transactions hold watermarks from now on.
    pub fn take_part<H: WatermarkHost>(&self, host: &H) {
        host.own().begin(host.database());
    }

    /// Returns whether the current transaction may make IDs of ticks that end after `now`, a fresh reading of flake's time.
    #[inline]
    pub fn has_admitted(&self, now: i64) -> bool {
        now >= self.admitted.get()
    }

    /// Lets the current transaction make IDs of ticks that end after `now`, a fresh reading of flake's time in an era. The caller compares
    /// the era after that.
    ///
    /// # Errors
    /// An announced watermark that is later.
    pub fn admit<H: WatermarkHost>(&self, host: &H, era: u64, now: i64) -> Result<(), i64> {
        if self.has_admitted(now) {
            return Ok(());
        }
        host.own().admit(host.shared().announced(era), now, || host.point("published"))?;
        self.count_bound(host, era, now);
        Ok(())
    }

    /// Counts a bound that was published in an era, if that is still in force. Returns whether it is.
    fn count_bound<H: WatermarkHost>(&self, host: &H, era: u64, bound: i64) -> bool {
        debug_assert!(bound == NONE || host.own().bound() <= bound, "the bound was published");
        let counts = host.shared().era() == era;
        if counts {
            self.admitted.set(self.admitted.get().min(bound));
        }
        counts
    }

    /// Makes the current transaction hold watermarks at an instant or below. If a later watermark may have been announced, it
    /// does not, and returns the latest one that may have been.
    pub fn cover<H: WatermarkHost>(&self, host: &mut H, instant: i64) -> Result<Option<i64>, H::Error> {
        loop {
            let era = host.shared().era();
            if self.page_read_era.get() != Some(era) {
                // After a start, only the page may have a watermark from before.
                ensure_page_current(host)?;
                self.page_read_era.set(Some(era));
                continue;
            }
            let floor = host.lock(|state| state.ledger.map_or(MIN_INSTANT, |ledger| ledger.floor));
            let later = if instant < floor {
                Some(floor)
            } else if self.has_admitted(instant) {
                None
            } else {
                host.own().hold(host.shared().announced(era), instant, || host.point("published")).err()
            };
            if self.count_bound(host, era, if later.is_none() { instant } else { NONE }) {
                return Ok(later);
            }
        }
    }

    /// Keeps watermarks from going back within a transaction whose statements share a snapshot: the memory of ended transactions is
    /// limited and merges them. A watermark of another era does not count.
    pub(super) fn not_before_the_last(&self, watermark: i64, era: u64) -> i64 {
        let (before, last) = self.last.get();
        let watermark = if before == era { last.max(watermark) } else { watermark };
        self.last.set((era, watermark));
        watermark
    }

    /// Makes the session read the page again before it covers IDs: what it has read may be of an extension that was created in what is
    /// now rolled back.
    pub fn invalidate_page(&self) {
        self.page_read_era.set(None);
    }

    /// Makes the current transaction, which is about to be prepared, hold watermarks until any session commits it or rolls it back.
    pub fn prepare<H: WatermarkHost>(&self, host: &H, xid: Option<u64>) {
        let bound = host.own().bound();
        let Some(xid) = xid.filter(|_| bound != NONE) else { return };
        // If no transaction can be prepared, there are no entries.
        if host.most_prepared() > 0 {
            host.add_prepared(&[Prepared::new(xid, bound, host.database())]);
        }
        host.carry(xid, bound);
    }

    /// Ends the current transaction, which new snapshots see as ended. `committed` is its ID if it has one and has committed.
    /// Returns whether it had made IDs.
    #[inline]
    pub fn end<H: WatermarkHost>(&self, host: &H, committed: Option<u64>) -> bool {
        host.own().end(committed, || host.point("kept"));
        self.last.set((0, MIN_INSTANT));
        self.admitted.replace(NONE) != NONE
    }
}
