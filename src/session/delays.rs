//! Counts IDs and waits for the view flake_stat.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flake_core::Reason;

use crate::ledger::{self, Counters};

/// How much of a generator the server's counters include.
#[derive(Default)]
pub struct Delays {
    /// The last delay, and how many IDs the generator had made by then.
    last: Option<(Reason, u64)>,
    /// How many IDs the ledger's counters include.
    reported: u64,
}

impl Delays {
    /// Counts a delay of a generator that has made `issued` IDs. However often the generator is asked again, the delay is counted
    /// once.
    pub fn count(&mut self, reason: Reason, issued: u64) {
        if self.last.replace((reason, issued)) == Some((reason, issued)) {
            return;
        }
        // Before its first ID, a generator waits for its first tick and has used up nothing.
        if reason == Reason::NextTick && issued > 0 {
            add(|counters| &counters.overflow_waits, 1);
        }
    }

    /// Adds the IDs made since the last report to the ledger's counters.
    pub fn report(&mut self, issued: u64) {
        let new = issued - std::mem::replace(&mut self.reported, issued);
        add(|counters| &counters.issued, new);
    }
}

/// Records a wait that has ended.
pub fn record(waited: Duration) {
    if let Some(counters) = ledger::counters() {
        counters.longest_wait.fetch_max(waited.as_micros() as u64, Ordering::Relaxed);
    }
}

/// Adds to one of the server's counters.
fn add(counter: impl Fn(&Counters) -> &AtomicU64, number: u64) {
    if let Some(counters) = ledger::counters() {
        counter(counters).fetch_add(number, Ordering::Relaxed);
    }
}
