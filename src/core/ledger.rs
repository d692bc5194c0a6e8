//! The ledger: what a session has to know of earlier ones so that no ID is made twice.
//!
//! The ledger consists of plain numbers, so that it can lie in shared memory. Its users keep two rules: one session at a
//! time replaces the [`Ledger`], and the new timeline is on disk before any session acts on it.

use crate::absent;
use crate::timeline::{MARGIN, Stretch, Timeline};

/// How far a generator has got: what its successor continues from.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// When the tick of the last ID began.
    pub start: i64,
    /// The position after the last ID.
    pub position: u64,
    /// How many IDs remain in the tick.
    pub remaining: u64,
    /// For generators that go back in time: when the latest tick began that the clock stepped back from.
    pub stepped_back_from: i64,
    /// For generators that go back in time: how often the clock stepped back.
    pub drifts: u64,
}

impl Progress {
    /// The generator and its predecessors have used no tick that starts at or after this instant.
    pub const fn free_from(&self) -> i64 {
        (if self.start > self.stepped_back_from { self.start } else { self.stepped_back_from }).saturating_add(1)
    }
}

/// What a generator's successor needs to know of it.
#[derive(Debug, Clone, Copy)]
pub struct FinalProgress {
    /// The key that the generator is stored under.
    pub key: u64,
    /// The era in which the progress was made.
    pub era: u64,
    /// How far the generator got.
    pub progress: Progress,
}

/// The time that generators may use without asking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Ticks that end before this instant are closed.
    pub from: i64,
    /// Ticks that start at or after this instant are closed.
    pub until: i64,
    /// Ticks that end after this instant are closed.
    pub skip: i64,
}

impl Window {
    /// All time.
    pub const ALL: Self = Self { from: i64::MIN, until: i64::MAX, skip: i64::MAX };

    /// For ticks of this length, returns the first start that is open and how long starts are open from there.
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
    /// The progress of the share's previous generator, to resume from.
    pub resumed: Option<Progress>,
}

/// What all sessions know of the use of time.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ledger {
    timeline: Timeline,
    /// Ticks of the open stretch that start at or after this instant have been used in this era only.
    floor: i64,
    /// How often the open stretch changed; progress made in another era does not count.
    era: u64,
}

impl Ledger {
    /// Creates a ledger that knows nothing but the present instant: IDs start above it.
    pub fn new(now: i64) -> Self {
        let timeline = Timeline::since(now);
        let floor = if absent!(LedgerPresent) { i64::MIN } else { timeline.open().until };
        Self { timeline, floor, era: 0 }
    }

    /// Continues after a restart: above the open stretch, or from `free_from` when the last session to exit noted it.
    pub fn reopened(timeline: Timeline, free_from: Option<i64>) -> Self {
        let until = if absent!(LedgerReopened) { timeline.open().from } else { timeline.open().until };
        Self { timeline, floor: free_from.map_or(until, |free_from| free_from.min(until)), era: 0 }
    }

    /// Continues from a copy of another server's timeline, which is out of date: above its open stretch. What that server
    /// has skipped does not count, because time below it may have been used since.
    pub fn inherited(mut timeline: Timeline) -> Self {
        timeline.forget_skipped();
        Self::reopened(timeline, None)
    }

    /// Returns the ledger with its floor at an instant or above: another server may have made this server's IDs before it.
    #[must_use]
    pub fn raised_to(mut self, instant: i64) -> Self {
        if absent!(LedgerRaised) {
            return self;
        }
        self.timeline.use_until(instant);
        self.floor = self.timeline.open().until;
        self.era += u64::from(!absent!(LedgerRaisedEra));
        self
    }

    /// The stretches of used time.
    pub const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// No generator uses a tick that starts at or after this instant until the ledger is extended.
    pub const fn granted_until(&self) -> i64 {
        self.timeline.open().until
    }

    /// The mark: no ID comes nearer to it than [`MARGIN`] until it has moved.
    pub const fn mark(&self) -> i64 {
        self.granted_until().saturating_add(MARGIN)
    }

    /// The mark of the latest time that was ever used, which a clock that was ahead may have left above the present one.
    pub fn greatest_mark(&self) -> i64 {
        self.timeline.stretches().last().map_or(i64::MIN, |last| last.until).saturating_add(MARGIN)
    }

    /// New generators use no tick that starts before this instant.
    pub const fn floor(&self) -> i64 {
        self.floor
    }

    /// Generators of another era start anew.
    pub const fn era(&self) -> u64 {
        self.era
    }

    /// The time that generators may use without extending the ledger.
    pub fn window(&self) -> Window {
        let Stretch { from, until } = self.timeline.open();
        let skipped = self.timeline.skipped().filter(|_| !absent!(LedgerSkippedTick));
        Window { from, until, skip: skipped.map_or(i64::MAX, |skipped| skipped.from) }
    }

    /// Returns the ledger with its open stretch ahead of `now`, for a tick that ends at `tick_end`.
    ///
    /// # Errors
    /// The instant to wait for.
    pub fn extended(&self, now: i64, tick_end: i64) -> Result<Self, i64> {
        let mut new = *self;
        new.timeline.extend(now, tick_end)?;
        if let Some(passed) = self.timeline.above().iter().take_while(|skipped| skipped.from < tick_end).last()
            && !absent!(LedgerPassed)
        {
            new.floor = passed.until;
            new.era += 1;
        }
        Ok(new)
    }

    /// Returns the ledger that counts `now`, which lies before the open stretch, as used, and the window around it. This
    /// is for generators that go back in time: they know what they have used there, but not which time to skip.
    ///
    /// # Errors
    /// The instant to wait for.
    pub fn covered(&self, now: i64, tick_end: i64) -> Result<(Self, Window), i64> {
        let skip = if absent!(LedgerCoveredSkip) { i64::MAX } else { self.window().skip };
        if let Some(skipped) = self.timeline.skipped()
            && tick_end > skip
        {
            return Err(skipped.until);
        }
        let mut new = *self;
        let Stretch { from, until } = new.timeline.cover(now);
        Ok((if absent!(LedgerCovered) { *self } else { new }, Window { from, until, skip }))
    }

    /// Returns the ledger that continues at the present clock although later IDs exist, and the instant from which it
    /// does. It is unchanged where only the end of the open stretch has to pass.
    pub fn accepted(&self, now: i64) -> (Self, i64) {
        let mut new = *self;
        let from = new.timeline.accept(now);
        if new.timeline.open() == self.timeline.open() {
            return (*self, from);
        }
        new.floor = from;
        new.era += 1;
        (new, from)
    }
}

/// How many generators of a slot have their progress stored one by one.
const MAX_GENERATORS: usize = 8;

/// The progress that the sessions of one slot have left.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotProgress {
    era: u64,
    count: usize,
    /// Every generator that is not stored has used only ticks that start before this instant.
    floor: i64,
    stored: [(u64, Progress); MAX_GENERATORS],
}

impl SlotProgress {
    /// Returns how a generator with this key begins, using nothing before `floor`.
    pub fn start(&self, ledger: &Ledger, key: u64, floor: i64) -> Start {
        let floor = ledger.floor.max(floor);
        if self.era != ledger.era && !absent!(SlotEra) {
            return Start { free_from: floor, resumed: None };
        }
        match self.stored[..self.count].iter().find(|(of, _)| *of == key) {
            None => Start { free_from: floor.max(self.floor), resumed: None },
            Some((_, progress)) if progress.start >= floor || absent!(SlotBelowFloor) => {
                Start { free_from: floor, resumed: Some(*progress) }
            }
            Some(_) if absent!(SlotSteppedBack) => Start { free_from: floor, resumed: None },
            Some((_, progress)) => Start { free_from: floor.max(progress.free_from()), resumed: None },
        }
    }

    /// Stores the progress of a generator that ends. When there is no room, the oldest progress raises the floor
    /// instead.
    pub fn store(&mut self, last: &FinalProgress) {
        let FinalProgress { key, era, progress } = *last;
        if !self.enter(era) || absent!(SlotStored) {
            return;
        }
        let index = match self.stored[..self.count].iter().position(|(of, _)| *of == key) {
            Some(index) => index,
            None if self.count < MAX_GENERATORS => {
                self.count += 1;
                self.count - 1
            }
            None => {
                let free_from = |index: &usize| self.stored[*index].1.free_from();
                let oldest = (0..MAX_GENERATORS).min_by_key(free_from).unwrap_or(0);
                let is_oldest = progress.free_from() <= free_from(&oldest);
                if !absent!(SlotFull) {
                    self.floor = self.floor.max(progress.free_from().min(free_from(&oldest)));
                }
                if is_oldest {
                    return;
                }
                oldest
            }
        };
        self.stored[index] = (key, progress);
    }

    /// Gives up all time before an instant, for a session that could not store its progress.
    pub fn abandon(&mut self, era: u64, free_from: i64) {
        if self.enter(era) && !absent!(SlotAbandoned) {
            self.floor = self.floor.max(free_from);
            self.count = 0;
        }
    }

    /// Begins an era if it is new; returns false if it is over.
    fn enter(&mut self, era: u64) -> bool {
        if era > self.era {
            *self = Self { era, ..Self::default() };
        }
        era == self.era || absent!(SlotEraOver)
    }
}
