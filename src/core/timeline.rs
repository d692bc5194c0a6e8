//! Used time: the stretches of time in which IDs may have been made.
//!
//! IDs are made only in the *open* stretch. Its end moves ahead on disk before the clock reaches it. No stretch is ever
//! removed, so time outside all stretches is unused, whatever a server has lost from memory. Stretches above the open one
//! were used by a clock that was ahead; they are skipped.
//!
//! The *mark* is [`MARGIN`] above the end of a stretch. It is what other servers are told, which learn of it late.

use serde::{Deserialize, Serialize};

use crate::absent;

/// How far ahead of the clock the end of the open stretch is set, in microseconds. A crash can cost this much time.
pub const AHEAD: i64 = 3_000_000;
/// How far the mark is above the end of a stretch, in microseconds: the time by which another server's knowledge may lag.
pub const MARGIN: i64 = 2_000_000;
/// How many stretches a timeline holds.
const MAX_STRETCHES: usize = 32;

/// Time from one instant up to, but not including, another.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stretch {
    /// The first instant.
    pub from: i64,
    /// The first instant after it.
    pub until: i64,
}

/// Stretches in order, without overlaps. It consists of plain numbers, so that it can lie in shared memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeline {
    stretches: [Stretch; MAX_STRETCHES],
    count: usize,
    open: usize,
}

impl Timeline {
    /// Creates a timeline in which only this instant is used.
    pub fn since(instant: i64) -> Self {
        let mut stretches = [Stretch::default(); MAX_STRETCHES];
        stretches[0] = Stretch { from: instant, until: instant.saturating_add(1) };
        Self { stretches, count: 1, open: 0 }
    }

    /// Creates the timeline of these stretches, with the index of the open one; none unless they are in order.
    pub fn of(stretches: &[Stretch], open: usize) -> Option<Self> {
        let ordered = stretches.iter().all(|stretch| stretch.from <= stretch.until)
            && stretches.windows(2).all(|pair| pair[0].until <= pair[1].from);
        if !ordered || open >= stretches.len() || stretches.len() > MAX_STRETCHES {
            return None;
        }
        let mut timeline = Self { stretches: [Stretch::default(); MAX_STRETCHES], count: stretches.len(), open };
        timeline.stretches[..stretches.len()].copy_from_slice(stretches);
        Some(timeline)
    }

    /// All stretches, in order.
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches[..self.count]
    }

    /// The index of the open stretch.
    pub const fn open_index(&self) -> usize {
        self.open
    }

    /// The stretch in which IDs are made.
    pub const fn open(&self) -> Stretch {
        self.stretches[self.open]
    }

    /// The stretches that have to be skipped: those above the open one.
    pub fn above(&self) -> &[Stretch] {
        if absent!(TimelineSkipped) { &[] } else { &self.stretches()[self.open + 1..] }
    }

    /// The next stretch that has to be skipped.
    pub fn skipped(&self) -> Option<Stretch> {
        self.above().first().copied()
    }

    /// Forgets the stretches above the open one, for a copy of another server's timeline.
    pub fn forget_skipped(&mut self) {
        self.count = self.open + 1;
    }

    /// Counts all time before this instant as used.
    pub fn use_until(&mut self, instant: i64) {
        while self.open > 0 {
            self.close_gap(0);
        }
        self.stretches[self.open] = Stretch { from: i64::MIN, until: self.open().until.max(instant) };
        while let Some(skipped) = self.skipped()
            && skipped.from <= self.open().until
        {
            self.stretches[self.open].until = self.open().until.max(skipped.until);
            self.remove(self.open + 1);
        }
    }

    /// Moves the end of the open stretch ahead of `now`, so that a tick that ends at `tick_end` can be used.
    ///
    /// # Errors
    /// The instant to wait for, when the tick lies in another stretch; nothing has changed then.
    pub fn extend(&mut self, now: i64, tick_end: i64) -> Result<(), i64> {
        let mut open = self.open;
        while let Some(skipped) = self.above().get(open - self.open)
            && tick_end > skipped.from
        {
            if now < skipped.until {
                return Err(skipped.until);
            }
            open += 1;
        }
        let stretch = self.stretches[open];
        if now < stretch.from {
            return Err(stretch.from);
        }
        self.open = open;
        let until = now.saturating_add(AHEAD).min(self.skipped().map_or(i64::MAX, |skipped| skipped.from));
        if now <= stretch.until {
            self.stretches[open].until = stretch.until.max(until);
        } else {
            self.insert(open + 1, Stretch { from: now, until });
            self.open += 1;
            self.forget();
        }
        Ok(())
    }

    /// Makes a stretch below the open one hold `now`, and returns it: for generators that go back in time.
    pub fn cover(&mut self, now: i64) -> Stretch {
        let above = self.stretches().iter().position(|stretch| stretch.from > now).unwrap_or(self.count);
        let end = now.saturating_add(AHEAD).min(self.stretches().get(above).map_or(i64::MAX, |next| next.from));
        match above.checked_sub(1) {
            Some(below) if now < self.stretches[below].until.saturating_add(AHEAD) => {
                self.stretches[below].until = self.stretches[below].until.max(end);
                self.stretches[below]
            }
            _ => {
                let stretch = Stretch { from: now, until: end };
                let is_below = above <= self.open;
                self.insert(above, stretch);
                self.open += usize::from(is_below);
                self.forget();
                stretch
            }
        }
    }

    /// Opens the first unused time at or after `now`, and returns when it begins.
    pub fn accept(&mut self, now: i64) -> i64 {
        let mut from = now;
        let mut above = 0;
        while let Some(stretch) = self.stretches().get(above)
            && stretch.from <= from
        {
            if !absent!(TimelineAccepted) {
                from = from.max(stretch.until);
            }
            above += 1;
        }
        let is_used_below = above > 0 && self.stretches[above - 1].until == from;
        if !is_used_below {
            self.insert(above, Stretch { from, until: from });
        }
        self.open = self.stretches().partition_point(|stretch| stretch.from <= from) - 1;
        self.forget();
        from
    }

    fn insert(&mut self, mut at: usize, stretch: Stretch) {
        if self.count == MAX_STRETCHES {
            // Counting a gap as used is safe, and the oldest gap is the least likely to be needed. The gap that receives the
            // stretch has to stay, and so does the one above the open stretch.
            let gap = (0..MAX_STRETCHES - 1).find(|&gap| gap + 1 != at && gap != self.open).unwrap_or(0);
            self.close_gap(gap);
            at -= usize::from(at > gap);
        }
        self.stretches.copy_within(at..self.count, at + 1);
        self.stretches[at] = stretch;
        self.count += 1;
    }

    fn remove(&mut self, at: usize) {
        self.stretches.copy_within(at + 1..self.count, at);
        self.count -= 1;
    }

    /// Merges a stretch with the next one.
    fn close_gap(&mut self, after: usize) {
        if !absent!(TimelineMerged) {
            self.stretches[after].until = self.stretches[after + 1].until;
        }
        self.remove(after + 1);
        self.open -= usize::from(self.open > after);
    }

    /// Closes the gaps below the open stretch that are shorter than the time since: a clock that was ahead by so little
    /// has passed the gap. Few gaps remain, because each is longer than all time after it.
    fn forget(&mut self) {
        let mut after = 0;
        while after < self.open {
            let gap = (self.stretches[after].until, self.stretches[after + 1].from);
            if gap.1.wrapping_sub(gap.0) as u64 >= self.open().until.wrapping_sub(gap.1) as u64 {
                after += 1;
            } else {
                self.close_gap(after);
            }
        }
    }
}
