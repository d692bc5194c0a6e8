//! The look-out for an old primary, which may go on for a while after another server has taken its place.
//!
//! A new incarnation, or a server with a new number, looks out for [`MARGIN`], by a clock that nobody sets. If it meets the mark of
//! another incarnation meanwhile, it opens no window until that is over. Both are in each record that it writes, so the next
//! start does the same.

use super::marks::MARGIN;

/// What a ledger knows of its look-out.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookout {
    /// Until when it looks out, by the steady clock.
    until: i64,
    /// Whether it has met another incarnation, and has opened no window since.
    waits: bool,
}

impl Lookout {
    /// Begins to look out, if that `watches`.
    pub const fn begin(steady: i64, watches: bool) -> Self {
        Self { until: if watches { steady.saturating_add(MARGIN) } else { i64::MIN }, waits: false }
    }

    /// Opens no window until an instant of the steady clock.
    pub(super) const fn waiting(until: i64) -> Self {
        Self { until, waits: true }
    }

    /// Whether it looks out.
    pub const fn is_on(&self, steady: i64) -> bool {
        steady < self.until
    }

    /// It has met another incarnation.
    pub(super) const fn wait(&mut self) {
        self.waits = true;
    }

    /// A window is opened.
    pub(super) const fn opens(&mut self) {
        self.waits = false;
    }

    /// Whether it has met another incarnation, and has opened no window since.
    pub const fn waits(&self) -> bool {
        self.waits
    }

    /// Whether it has to wait.
    pub const fn is_waiting(&self, steady: i64) -> bool {
        self.waits && steady < self.until
    }

    /// Returns how much longer it has to wait.
    pub fn left(&self, steady: i64) -> i64 {
        if self.waits { self.until.saturating_sub(steady).max(0) } else { 0 }
    }
}
