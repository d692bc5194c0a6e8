//! Counts the waits of a generator, by their reasons.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flake_core::Reason;

use crate::ledger::{self, Counters};

/// How often a generator had to wait, and why.
#[derive(Default)]
pub struct Delays {
    pub overflow_waits: u64,
    pub clock_steps: u64,
    pub waited: Duration,
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
        match reason {
            // Before its first ID, a generator waits for its first tick and has used up nothing.
            Reason::NextTick if issued == 0 => {}
            Reason::Pace => {}
            Reason::NextTick => {
                self.overflow_waits += 1;
                add(|counters| &counters.overflow_waits, 1);
            }
            Reason::ClockBehind => {
                self.clock_steps += 1;
                add(|counters| &counters.clock_waits, 1);
                ledger::watch_clock();
            }
        }
    }

    /// Adds the IDs made since the last report to the ledger's counters.
    pub fn report(&mut self, issued: u64) {
        let new = issued - std::mem::replace(&mut self.reported, issued);
        add(|counters| &counters.issued, new);
    }

    /// Adds a wait that has ended.
    pub fn record_wait(&mut self, waited: Duration) {
        if waited.is_zero() {
            return;
        }
        self.waited += waited;
        if let Some(counters) = ledger::counters() {
            counters.longest_wait.fetch_max(waited.as_micros() as u64, Ordering::Relaxed);
        }
    }
}

/// Adds to one of the server's counters.
fn add(counter: impl Fn(&Counters) -> &AtomicU64, number: u64) {
    if let Some(counters) = ledger::counters() {
        counter(counters).fetch_add(number, Ordering::Relaxed);
    }
}
