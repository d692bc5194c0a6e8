//! Used time: a set of instants that only grows.
//!
//! All time before `until` is used, except for *gaps*. A gap is free time that a clock skipped when it jumped ahead. No ID is made
//! in a gap again unless a superuser *accepts* it, because IDs would then not be in order. Two sets are united, never compared: an
//! instant is free only if both sets say so.

use super::window::Window;
use crate::instant::{BEGINNING, NEVER};

/// How many gaps a set has room for. A gap without room counts as used.
pub const MAX_GAPS: usize = 8;

/// A piece of free time: a gap, or the time from `until` on, which has no end.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Free {
    /// The first free instant.
    pub from: i64,
    /// The first instant after it; [`NEVER`] if it has no end.
    pub to: i64,
    /// Whether IDs may be made in it although later IDs exist.
    pub accepted: bool,
}

/// A set of used instants, in plain numbers, so that it can be in shared memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    until: i64,
    count: u32,
    gaps: [Free; MAX_GAPS],
}

impl Used {
    /// Nothing is used.
    pub const NONE: Self = Self::before(BEGINNING);

    /// All time before an instant is used.
    pub const fn before(until: i64) -> Self {
        Self { until, count: 0, gaps: [Free { from: 0, to: 0, accepted: false }; MAX_GAPS] }
    }

    /// All time before an instant is used, except for these gaps, which are in order.
    pub fn except(until: i64, gaps: impl IntoIterator<Item = Free>) -> Self {
        Self::of(gaps.into_iter().chain([Free { from: until, to: NEVER, accepted: true }]).collect())
    }

    /// The first instant after all used time.
    pub const fn until(&self) -> i64 {
        self.until
    }

    /// The gaps, in order.
    pub fn gaps(&self) -> &[Free] {
        &self.gaps[..self.count as usize]
    }

    /// All free time, in order.
    pub fn free(&self) -> impl Iterator<Item = Free> + '_ {
        self.gaps().iter().copied().chain([Free { from: self.until, to: NEVER, accepted: true }])
    }

    /// Returns the free time around an instant.
    pub fn free_at(&self, instant: i64) -> Option<Free> {
        self.free().find(|free| free.from <= instant && instant < free.to)
    }

    /// Returns when, after an instant, the next accepted free time begins.
    pub fn accepted_after(&self, instant: i64) -> i64 {
        self.free().filter(|free| free.accepted && free.from > instant).map(|free| free.from).min().unwrap_or(NEVER)
    }

    /// Returns the used time around an instant: its first instant, and the first free instant after it.
    pub fn around(&self, instant: i64) -> (i64, i64) {
        let from = self.free().filter(|free| free.to <= instant).map(|free| free.to).max().unwrap_or(BEGINNING);
        (from, self.free().map(|free| free.from).find(|&free| free > instant).unwrap_or(NEVER))
    }

    /// Returns whether any instant between two is used.
    pub fn touches(&self, from: i64, to: i64) -> bool {
        from < to && !self.free().any(|free| free.from <= from && to <= free.to)
    }

    /// Returns whether all instants between two are used.
    pub fn includes(&self, from: i64, to: i64) -> bool {
        from >= to || !self.free().any(|free| free.from < to && from < free.to)
    }

    /// Returns whether everything that the other set uses is used here.
    pub fn contains(&self, other: &Self) -> bool {
        self.free().all(|free| !other.touches(free.from, free.to))
    }

    /// Makes a set from pieces of free time, which may be empty or out of order. If there are too many gaps, the shortest count as
    /// used, but not the latest, over which the clock has jumped just now.
    fn of(mut free: Vec<Free>) -> Self {
        free.retain(|free| free.from < free.to);
        free.sort_unstable_by_key(|free| free.from);
        let last = free.pop().unwrap_or(Free { from: NEVER, to: NEVER, accepted: true });
        while free.len() > MAX_GAPS {
            let earlier = 0..free.len() - 1;
            free.remove(earlier.min_by_key(|&at| free[at].to.abs_diff(free[at].from)).unwrap_or(0));
        }
        let mut set = Self { count: free.len() as u32, ..Self::before(last.from) };
        set.gaps[..free.len()].copy_from_slice(&free);
        set
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn united(&self, other: &Self) -> Self {
        let mut both = Vec::new();
        for one in self.free() {
            for other in other.free() {
                let (from, to) = (one.from.max(other.from), one.to.min(other.to));
                // Time without an end is always accepted, so it does not say whether a gap is.
                let accepted = match (one.to, other.to) {
                    (NEVER, NEVER) => true,
                    (NEVER, _) => other.accepted,
                    (_, NEVER) => one.accepted,
                    _ => one.accepted || other.accepted,
                };
                both.push(Free { from, to, accepted });
            }
        }
        Self::of(both)
    }

    /// Returns the set with the time between two instants added. Free time before it becomes a gap that is not accepted.
    #[must_use]
    pub fn with(&self, from: i64, to: i64) -> Self {
        if from >= to {
            return *self;
        }
        let mut rest = Vec::new();
        for free in self.free() {
            if free.to <= from || to <= free.from {
                rest.push(free);
                continue;
            }
            rest.push(Free { to: from, accepted: false, ..free });
            rest.push(Free { from: to, ..free });
        }
        Self::of(rest)
    }

    /// Returns the set without the time between two instants: the end of a window that was granted and never used.
    #[must_use]
    pub fn without(&self, from: i64, to: i64) -> Self {
        if from >= to || !self.includes(from, to) {
            return *self;
        }
        let mut free: Vec<Free> = self.free().collect();
        match free.iter_mut().find(|free| free.from == to) {
            Some(next) => next.from = from,
            None => free.push(Free { from, to, accepted: true }),
        }
        Self::of(free)
    }

    /// Returns the set with all gaps accepted that end after an instant.
    #[must_use]
    pub fn accepting(mut self, now: i64) -> Self {
        for gap in &mut self.gaps[..self.count as usize] {
            gap.accepted |= gap.to > now;
        }
        self
    }

    /// Returns the set with the gaps before an instant no longer accepted, because the clock has passed them.
    #[must_use]
    pub fn leaving(mut self, now: i64) -> Self {
        for gap in &mut self.gaps[..self.count as usize] {
            gap.accepted &= gap.to > now;
        }
        self
    }

    /// Returns the set without the gaps that the clock must have made up for: it has run for longer since then than it had jumped
    /// ahead. Time in other gaps is not counted, because the clock may have jumped there again. A jump can exceed its gap by
    /// `more`.
    #[must_use]
    pub fn forgetting(&self, now: i64, more: i64) -> Self {
        let mut gaps = self.gaps().to_vec();
        let mut skipped = 0i64;
        for at in (0..gaps.len()).rev() {
            let Free { from, to, .. } = gaps[at];
            let length = to.saturating_sub(from).saturating_add(more);
            if to <= now && length <= now.saturating_sub(to).saturating_sub(skipped) {
                gaps.remove(at);
            }
            skipped = skipped.saturating_add(length);
        }
        Self::except(self.until, gaps)
    }

    /// Returns the used time after an instant, in order.
    pub fn after(&self, instant: i64) -> Vec<(i64, i64)> {
        let mut used = Vec::new();
        let mut from = instant;
        for free in self.free().filter(|free| free.to > instant) {
            if from < free.from {
                used.push((from, free.from));
            }
            from = free.to;
        }
        used
    }

    /// Returns the window from one instant to another. Its `skip` is where the next used time begins.
    pub fn window(&self, from: i64, until: i64) -> Window {
        let end = self.free_at(until).map_or(until, |free| free.to);
        Window { from, until, skip: end }
    }
}
