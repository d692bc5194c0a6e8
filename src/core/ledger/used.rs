//! Used time: a set of instants that only grows.
//!
//! Everything before `until` is used, except *gaps*. A gap arises when a clock jumps ahead, from the moment that it has: time
//! that was passed without an ID. IDs go back into a gap only if an operator has *accepted* it. Sets are united, never
//! compared: an instant is free where all sides say so.

use super::window::Window;

/// How many gaps a set keeps. A gap without a place counts as used.
pub const MAX_GAPS: usize = 8;

/// Free time: a gap, or the last piece, which has no end.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Free {
    /// The first free instant.
    pub from: i64,
    /// The first instant after it; [`i64::MAX`] where there is none.
    pub to: i64,
    /// Whether IDs may be made in it although later ones exist.
    pub accepted: bool,
}

/// A set of used instants, in plain numbers, so that it can lie in shared memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    until: i64,
    count: u32,
    gaps: [Free; MAX_GAPS],
}

impl Used {
    /// Nothing is used.
    pub const NONE: Self = Self::before(i64::MIN);

    /// Everything before an instant is used.
    pub const fn before(until: i64) -> Self {
        Self { until, count: 0, gaps: [Free { from: 0, to: 0, accepted: false }; MAX_GAPS] }
    }

    /// Everything before an instant is used, except these gaps, in order.
    pub fn except(until: i64, gaps: impl IntoIterator<Item = Free>) -> Self {
        Self::of(gaps.into_iter().chain([Free { from: until, to: i64::MAX, accepted: true }]).collect(), i64::MIN)
    }

    /// No instant from this one on is used.
    pub const fn until(&self) -> i64 {
        self.until
    }

    /// The free time before that, in order.
    pub fn gaps(&self) -> &[Free] {
        &self.gaps[..self.count as usize]
    }

    /// All free time, in order.
    pub fn free(&self) -> impl Iterator<Item = Free> + '_ {
        self.gaps().iter().copied().chain([Free { from: self.until, to: i64::MAX, accepted: true }])
    }

    /// Returns the free time that holds an instant.
    pub fn free_at(&self, instant: i64) -> Option<Free> {
        self.free().find(|free| free.from <= instant && instant < free.to)
    }

    /// Returns when free time that is accepted begins, after an instant.
    pub fn accepted_after(&self, instant: i64) -> i64 {
        self.free().filter(|free| free.accepted && free.from > instant).map(|free| free.from).min().unwrap_or(i64::MAX)
    }

    /// Returns the used time that holds an instant: its beginning, and the first free instant after it.
    pub fn around(&self, instant: i64) -> (i64, i64) {
        let from = self.free().filter(|free| free.to <= instant).map(|free| free.to).max().unwrap_or(i64::MIN);
        (from, self.free().map(|free| free.from).find(|&free| free > instant).unwrap_or(i64::MAX))
    }

    /// Returns whether an instant between two is used.
    pub fn touches(&self, from: i64, to: i64) -> bool {
        from < to && !self.free().any(|free| free.from <= from && to <= free.to)
    }

    /// Returns whether all between two instants is used.
    pub fn includes(&self, from: i64, to: i64) -> bool {
        from >= to || !self.free().any(|free| free.from < to && from < free.to)
    }

    /// Returns whether everything is used here that is used there.
    pub fn contains(&self, other: &Self) -> bool {
        self.free().all(|free| !other.touches(free.from, free.to))
    }

    /// Makes the set of free time, from pieces of which some may hold no instant. Where there are too many gaps the shortest counts
    /// as used, but not the one at `present`. The clock may be in the one before all used time, where the first ID came too early.
    fn of(mut free: Vec<Free>, present: i64) -> Self {
        free.retain(|free| free.from < free.to);
        free.sort_unstable_by_key(|free| free.from);
        let last = free.pop().unwrap_or(Free { from: i64::MAX, to: i64::MAX, accepted: true });
        let is_present = |gap: &Free| present > i64::MIN && gap.from <= present && present <= gap.to;
        let length = |gap: &Free| gap.to.abs_diff(gap.from);
        while free.len() > MAX_GAPS {
            let others = (0..free.len()).filter(|&at| !is_present(&free[at]));
            free.remove(others.min_by_key(|&at| length(&free[at])).unwrap_or(0));
        }
        let mut set = Self { count: free.len() as u32, ..Self::before(last.from) };
        set.gaps[..free.len()].copy_from_slice(&free);
        set
    }

    /// Returns what is used here or there. `present` is the clock, whose gap is kept.
    #[must_use]
    pub fn united(&self, other: &Self, present: i64) -> Self {
        let mut both = Vec::new();
        for one in self.free() {
            for other in other.free() {
                let (from, to) = (one.from.max(other.from), one.to.min(other.to));
                // Time without an end is free for anybody, so it says nothing of a gap.
                let accepted = match (one.to, other.to) {
                    (i64::MAX, i64::MAX) => true,
                    (i64::MAX, _) => other.accepted,
                    (_, i64::MAX) => one.accepted,
                    _ => one.accepted || other.accepted,
                };
                both.push(Free { from, to, accepted });
            }
        }
        Self::of(both, present)
    }

    /// Returns the set in which the time between two instants is used as well. Time left free before it is not accepted.
    #[must_use]
    pub fn with(&self, from: i64, to: i64, present: i64) -> Self {
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
        Self::of(rest, present)
    }

    /// Returns the set with free time that begins later: for IDs that a server made after it was last heard of.
    #[must_use]
    pub fn later(&self, by: i64) -> Self {
        let later = |free: Free| Free {
            from: if free.from == i64::MIN { i64::MIN } else { free.from.saturating_add(by) },
            ..free
        };
        Self::of(self.free().map(later).collect(), i64::MIN)
    }

    /// Returns the set without the end of a window that was granted and not used, from `from` to `to`.
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
        Self::of(free, from)
    }

    /// Returns the set whose gaps after an instant are accepted.
    #[must_use]
    pub fn accepting(mut self, now: i64) -> Self {
        for gap in &mut self.gaps[..self.count as usize] {
            gap.accepted |= gap.to > now;
        }
        self
    }

    /// Returns the set whose gaps before an instant are not accepted any more: the clock has gone on.
    #[must_use]
    pub fn leaving(mut self, now: i64) -> Self {
        for gap in &mut self.gaps[..self.count as usize] {
            gap.accepted &= gap.to > now;
        }
        self
    }

    /// Returns the set without the gaps that are shorter than the used time since: a clock that was ahead by so little has passed
    /// them. Other gaps do not count as time, as the clock may have jumped again. A jump may be longer than its gap by `more`.
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

    /// Returns the used time after an instant, in order: what a clock that was ahead has used.
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

    /// Returns the window between two instants: it is closed from the next used time on.
    pub fn window(&self, from: i64, until: i64) -> Window {
        let end = self.free_at(until).map_or(until, |free| free.to);
        Window { from, until, skip: end }
    }
}
