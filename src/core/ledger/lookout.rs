//! The lookout for an old primary.
//!
//! The problem: after a failover, the old primary may still run for a while, and its last marks may not have been replicated. A new
//! primary with the same number could make the same IDs.
//!
//! The rule: for [`MARGIN`] by the steady clock, a new incarnation, or a server with a new number, looks out for the mark of
//! another incarnation. If it meets one, it opens no window until that time is over. Each record stores both facts, so that a
//! restart continues the lookout instead of ending it.

use super::marks::MARGIN;

/// The state of the lookout.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookout {
    /// When the lookout ends, by the steady clock.
    until: i64,
    /// Whether another incarnation was met, and no window has been opened since.
    waits: bool,
}

impl Lookout {
    /// Begins a lookout if `watches` is true.
    pub const fn begin(steady: i64, watches: bool) -> Self {
        Self { until: if watches { steady.saturating_add(MARGIN) } else { i64::MIN }, waits: false }
    }

    /// A lookout that waits until an instant of the steady clock, whatever it meets.
    pub(super) const fn waiting(until: i64) -> Self {
        Self { until, waits: true }
    }

    /// Whether the lookout lasts.
    pub const fn is_on(&self, steady: i64) -> bool {
        steady < self.until
    }

    /// Records that another incarnation was met.
    pub(super) const fn wait(&mut self) {
        self.waits = true;
    }

    /// Records that a window is opened.
    pub(super) const fn opens(&mut self) {
        self.waits = false;
    }

    /// Whether another incarnation was met, and no window has been opened since.
    pub const fn waits(&self) -> bool {
        self.waits
    }

    /// Whether no window may be opened yet.
    pub const fn is_waiting(&self, steady: i64) -> bool {
        self.waits && steady < self.until
    }

    /// Returns how many microseconds remain until a window may be opened.
    pub fn left(&self, steady: i64) -> i64 {
        if self.waits { self.until.saturating_sub(steady).max(0) } else { 0 }
    }
}
