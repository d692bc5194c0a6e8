//! The ledger: what a session has to know of those before it, so that nobody makes an ID again.
//!
//! All of it is plain numbers, so that it can lie in memory that sessions share. Whoever shares it keeps two rules: one
//! session at a time replaces the [`Ledger`], and its timeline is on disk before anybody acts by it.

use crate::timeline::{Stretch, Timeline};

/// Where a generator has got to: what its successor goes on from.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trace {
    /// When the tick of the last ID began.
    pub start: i64,
    /// The position after the last one.
    pub position: u64,
    /// How many more IDs the tick allows.
    pub left: u64,
    /// When the latest tick began that was left behind by a step back; for generators that go on in the past.
    pub behind: i64,
    /// How many steps back there were, likewise.
    pub drifts: u64,
}

impl Trace {
    /// Ticks that start at or after this instant are unused by the generator and its predecessors.
    pub const fn free_from(&self) -> i64 {
        (if self.start > self.behind { self.start } else { self.behind }).saturating_add(1)
    }
}

/// The time that generators may use without asking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Ticks that end before it are closed.
    pub from: i64,
    /// Ticks that start at or after it are closed.
    pub until: i64,
    /// Ticks that end after it are closed.
    pub skip: i64,
}

impl Window {
    /// All time.
    pub const ALL: Self = Self { from: i64::MIN, until: i64::MAX, skip: i64::MAX };

    /// Of ticks of this length the first start that is open, and for how long from there.
    pub(crate) fn starts(self, length: i64) -> (i64, u64) {
        let first = if self.from == i64::MIN { i64::MIN } else { self.from.saturating_sub(length - 1) };
        let skip = if self.skip == i64::MAX { i64::MAX } else { self.skip.saturating_sub(length - 1) };
        (first, self.until.min(skip).max(first).wrapping_sub(first) as u64)
    }
}

/// How a generator begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Ticks that start at or after this instant are unused.
    pub free_from: i64,
    /// The generator before in this share, to be continued.
    pub resumed: Option<Trace>,
}

/// What is known of the use of time, for all sessions.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ledger {
    timeline: Timeline,
    /// Ticks that start at or after this instant and lie in the open stretch have been used in this era only.
    low: i64,
    /// How often the open stretch was left for another one; traces of another era say nothing.
    era: u64,
}

impl Ledger {
    /// Nothing is known but the time of birth: IDs start above it.
    pub fn born(at: i64) -> Self {
        let timeline = Timeline::since(at);
        Self { timeline, low: timeline.open().until, era: 0 }
    }

    /// Goes on after a restart: above the mark, or above the last tick when all sessions have `left` saying what it was.
    pub fn reopened(timeline: Timeline, left: Option<i64>) -> Self {
        let mark = timeline.open().until;
        Self { timeline, low: left.map_or(mark, |left| left.min(mark)), era: 0 }
    }

    /// Goes on above an instant up to which another server may have made the IDs of this one, at any time before.
    #[must_use]
    pub fn above(mut self, instant: i64) -> Self {
        self.timeline.use_until(instant.saturating_add(1));
        self.low = self.timeline.open().until;
        self.era += 1;
        self
    }

    /// The stretches of used time.
    pub const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// No ID carries this instant or a later one unless the mark is moved.
    pub const fn mark(&self) -> i64 {
        self.timeline.open().until
    }

    /// Ticks that start before this instant are not used any more.
    pub const fn low(&self) -> i64 {
        self.low
    }

    /// Generators of another era start anew.
    pub const fn era(&self) -> u64 {
        self.era
    }

    /// The time that can be used as it is.
    pub fn window(&self) -> Window {
        let Stretch { from, until } = self.timeline.open();
        Window { from, until, skip: self.timeline.skipped().map_or(i64::MAX, |skipped| skipped.from) }
    }

    /// The ledger with its mark ahead of `now`, for a tick that ends at `tick_end`; or until when to wait.
    pub fn extended(&self, now: i64, tick_end: i64) -> Result<Self, i64> {
        let mut new = *self;
        new.timeline.extend(now, tick_end)?;
        let above = &self.timeline.stretches()[self.timeline.open_number() + 1..];
        if let Some(passed) = above.iter().take_while(|skipped| skipped.from < tick_end).last() {
            new.low = passed.until;
            new.era += 1;
        }
        Ok(new)
    }

    /// The ledger with `now`, which lies before the open stretch, counted as used, and the window for it; or until when
    /// to wait. For generators that go back in time and know what they have used there, but not what they skip.
    pub fn covered(&self, now: i64, tick_end: i64) -> Result<(Self, Window), i64> {
        if let Some(skipped) = self.timeline.skipped()
            && tick_end > skipped.from
        {
            return Err(skipped.until);
        }
        let mut new = *self;
        let Stretch { from, until } = new.timeline.cover(now);
        Ok((new, Window { from, until, ..self.window() }))
    }

    /// The ledger that goes on at the present clock though IDs of later times have been made, and when it can do so.
    /// Nothing is changed where only the end of the open stretch is left.
    pub fn accepted(&self, now: i64) -> (Self, i64) {
        let mut new = *self;
        let from = new.timeline.accept(now);
        if new.timeline.open() == self.timeline.open() {
            return (*self, from);
        }
        new.low = from;
        new.era += 1;
        (new, from)
    }
}

/// Generators of a slot whose traces are kept one by one.
const MOST: usize = 8;

/// What the sessions of one slot have left.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traces {
    era: u64,
    count: usize,
    /// Every generator without a trace has only used ticks that start before.
    floor: i64,
    kept: [(u64, Trace); MOST],
}

impl Traces {
    /// How a generator of this key begins, when besides nothing before `floor` is to be used.
    pub fn start(&self, ledger: &Ledger, key: u64, floor: i64) -> Start {
        let floor = ledger.low.max(floor);
        if self.era != ledger.era {
            return Start { free_from: floor, resumed: None };
        }
        match self.kept[..self.count].iter().find(|(of, _)| *of == key) {
            None => Start { free_from: floor.max(self.floor), resumed: None },
            Some((_, trace)) if trace.start >= floor => Start { free_from: floor, resumed: Some(*trace) },
            Some((_, trace)) => Start { free_from: floor.max(trace.free_from()), resumed: None },
        }
    }

    /// Keeps the trace of a generator that ends. Beyond the number that is kept, the oldest one becomes part of the floor.
    pub fn leave(&mut self, era: u64, key: u64, trace: Trace) {
        if !self.enter(era) {
            return;
        }
        let place = match self.kept[..self.count].iter().position(|(of, _)| *of == key) {
            Some(place) => place,
            None if self.count < MOST => {
                self.count += 1;
                self.count - 1
            }
            None => {
                let free_from = |place: &usize| self.kept[*place].1.free_from();
                let oldest = (0..MOST).min_by_key(free_from).unwrap_or(0);
                if trace.free_from() <= free_from(&oldest) {
                    self.floor = self.floor.max(trace.free_from());
                    return;
                }
                self.floor = self.floor.max(free_from(&oldest));
                oldest
            }
        };
        self.kept[place] = (key, trace);
    }

    /// Gives up everything before an instant, where traces could not be left.
    pub fn abandon(&mut self, era: u64, free_from: i64) {
        if self.enter(era) {
            self.floor = self.floor.max(free_from);
            self.count = 0;
        }
    }

    /// Begins an era, or says that this one is over.
    fn enter(&mut self, era: u64) -> bool {
        if era > self.era {
            *self = Self { era, ..Self::default() };
        }
        era == self.era
    }
}
