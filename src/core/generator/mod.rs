//! The generator: a state machine that turns readings of the clock into IDs.
//!
//! If the clock steps back, a generator answers [`Answer::Behind`], and the session lets its IDs lead the clock.
//!
//! 8. Snos toggle their tick-tock bit instead, and continue in the past, if none with the toggled bit was made there. The bit is the last
//!    one of a count that all sessions share. A session increases the count by compare-and-swap, only if a reading of the clock that
//!    it has made *after* it had loaded its lane's cursor is still behind, and the cursors of the other bit are in earlier ticks in all
//!    lanes. Snos lead the clock by an anchor of their own, so that layouts that lead do not let snos go back. No proc keeps
//!    anything, and an exit writes nothing.

mod block;
pub(crate) mod path;
pub(crate) mod resume;
pub(crate) mod source;
mod taking;

use self::block::Block;
use self::source::IdSource;
use self::taking::{BlockTaker, Stop, Tick};
use crate::Lanes;
use crate::cursors::Cursors;
use crate::instant::MIN_INSTANT;
use crate::layout::ticks::Ticks;

/// A generator's answer to an instant.
#[allow(missing_docs, reason = "the answers say what their instants are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<Id = u64> {
    /// A new ID.
    Issue(Id),
    /// The tick's IDs are used up; `until` is when the next tick begins.
    Wait { until: i64 },
    /// The generator is far enough ahead of the clock; `until` is when to ask again.
    Ahead { until: i64 },
    /// The clock is behind IDs that were made; `until` is when IDs can follow them.
    Behind { until: i64 },
    /// The tick of this instant is closed, because it began before the instant that the generator was started with; `until` is when
    /// the first tick begins that is open.
    Closed { until: i64 },
    /// The cursors do not count any more, so what was taken from them is dropped.
    Dropped,
    /// The clock is past the last tick.
    Exhausted,
}

/// The reason why a session waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The next tick, because the IDs of this one are used up.
    NextTick,
    /// The clock, which the last ID is ahead of within its tick.
    Pace,
}

impl<Id> Answer<Id> {
    /// Returns the instant to wait for, and why.
    pub const fn wait(&self) -> Option<(i64, Reason)> {
        match *self {
            Self::Wait { until } | Self::Closed { until } => Some((until, Reason::NextTick)),
            Self::Ahead { until } => Some((until, Reason::Pace)),
            _ => None,
        }
    }
}

/// How much longer something lasts, in microseconds; 0 if it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// The tick of the last ID.
    pub of_tick: u64,
    /// The step of the next ID.
    pub of_step: u64,
}

/// Makes IDs from blocks that it takes from lanes. It issues each ID at most once, even if readings of the clock go back or jump.
/// After a step back that snos follow, the tick-tock bit tells them apart.
#[derive(Debug, Clone)]
pub struct Generator<S: IdSource> {
    /// The source of its IDs.
    pub source: S,
    // The current tick: when it began, its number, and its bits. It began at the beginning of time if there is none yet.
    start: i64,
    tick: u64,
    time_bits: u64,
    block: Block,
    taking: BlockTaker,
    issued: u64,
    /// How many IDs had been issued when the tick began.
    issued_before: u64,
    ticks: Ticks,
    /// No tick is used that begins before this instant.
    min_tick_start: i64,
    /// How often snos had gone back in time when the tick began. The last bit is the tick-tock bit.
    steps_back: u64,
}

impl<S: IdSource> Generator<S> {
    /// Creates a generator whose own lane has the number `lane`, and which uses no tick that begins before the instant `min_tick_start`.
    pub fn start(source: S, lanes: &Lanes, lane: u64, min_tick_start: i64) -> Self {
        Self {
            source,
            start: MIN_INSTANT,
            tick: 0,
            time_bits: 0,
            block: Block::default(),
            taking: BlockTaker::new(lanes, source.path(lanes), lane),
            issued: 0,
            issued_before: 0,
            ticks: source.ticks(),
            min_tick_start,
            steps_back: 0,
        }
    }

    /// Continues for a source with the same bits, whose last tick may differ.
    pub fn adopt(&mut self, source: S) {
        self.ticks = source.ticks();
        self.source = source;
    }

    /// Makes the next ID at the instant `now`, if it has been taken already.
    #[inline]
    pub fn try_next(&mut self, now: i64, argument: S::Argument) -> Option<S::Id> {
        self.block.is_ready(now.wrapping_sub(self.start) as u64).then(|| self.issue(argument))
    }

    /// Makes the next ID at the instant `now`. If none is taken, takes some from the lanes with these cursors.
    #[inline]
    pub fn next(&mut self, now: i64, cursors: &impl Cursors, argument: S::Argument) -> Answer<S::Id> {
        if !self.block.is_ready(now.wrapping_sub(self.start) as u64)
            && let Err(answer) = self.take(now, cursors)
        {
            return answer;
        }
        Answer::Issue(self.issue(argument))
    }

    #[inline]
    fn issue(&mut self, argument: S::Argument) -> S::Id {
        self.issued += 1;
        self.source.id(self.time_bits, self.block.take(), argument)
    }

    /// Makes IDs at the instant `now`, up to the length of `ids` and as long as the tick has room. Returns how many.
    pub fn fill(&mut self, now: i64, cursors: &impl Cursors, ids: &mut [S::Id], argument: S::Argument) -> usize {
        let mut made = 0;
        while made < ids.len() {
            let Answer::Issue(id) = self.next(now, cursors, argument) else { break };
            ids[made] = id;
            // The rest of the run needs no checks.
            let rest = (ids.len() - made - 1).min(self.block.run() as usize);
            for id in &mut ids[made + 1..][..rest] {
                *id = self.source.id(self.time_bits, self.block.take(), argument);
            }
            self.issued += rest as u64;
            made += 1 + rest;
        }
        made
    }

    /// Returns how much longer the tick and the step of the last ID last after `now`.
    #[inline]
    pub const fn remaining(&self, now: i64) -> Remaining {
        let into_tick = now.wrapping_sub(self.start) as u64;
        Remaining {
            of_tick: (self.ticks.length as u64).saturating_sub(into_tick),
            of_step: self.block.remaining_in_step(into_tick),
        }
    }

    /// The lanes that it takes from.
    pub const fn lanes(&self) -> &Lanes {
        &self.taking.lanes
    }

    /// IDs made so far.
    pub const fn issued(&self) -> u64 {
        self.issued
    }

    /// Lets snos go back in time to the instant `now`, a reading of the clock that was made after the answer [`Answer::Behind`].
    /// Returns whether to ask again; if not, the generator is one of a layout, or time before `now` may have been used.
    pub fn step_back(&self, now: i64, cursors: &impl Cursors) -> bool {
        let (tick, size, bit) = (self.ticks.clamped(now), self.taking.lanes.size(), self.steps_back & 1);
        let last_of = |lane, bit| cursors.load(lane, bit).checked_sub(1).map(|last| last / size);
        if !self.source.goes_back() || last_of(self.taking.own, bit) <= Some(tick) {
            return false;
        }
        let is_unused = (0..self.taking.lanes.count).all(|lane| last_of(lane, 1 - bit) < Some(tick));
        // If this fails, another session has gone back, and may have made snos since.
        is_unused && cursors.step_back(self.steps_back) || cursors.steps_back() != self.steps_back
    }

    /// Takes IDs of the tick of `now`. The error is the answer to return instead of an ID.
    #[cold]
    fn take(&mut self, now: i64, cursors: &impl Cursors) -> Result<(), Answer<S::Id>> {
        let length = self.ticks.length;
        let steps_back = if self.source.goes_back() { cursors.steps_back() } else { 0 };
        let is_another = self.start == MIN_INSTANT || steps_back != self.steps_back;
        if is_another || now.wrapping_sub(self.start) as u64 >= length as u64 {
            self.enter_tick(now, steps_back)?;
        }
        let passed = now.wrapping_sub(self.start) as u64;
        if self.block.next_run(&self.taking.path, passed) {
            return Ok(());
        }
        let made = self.issued - self.issued_before;
        let tick = Tick { number: self.tick, length: length as u64, passed, made, bit: steps_back & 1 };
        self.block = self.taking.take(&tick, cursors, (now, self.issued)).map_err(|stop| match stop {
            Stop::UsedUp => Answer::Wait { until: self.start + length },
            Stop::Pace { until } => Answer::Ahead { until: self.start + until as i64 },
            Stop::Behind { tick, into } => Answer::Behind { until: self.ticks.start_of(tick) + into as i64 },
            Stop::Dropped => Answer::Dropped,
        })?;
        debug_assert!(self.start >= self.min_tick_start, "no ID is made in a tick that began before the floor");
        Ok(())
    }

    /// Moves to the tick of `now`.
    fn enter_tick(&mut self, now: i64, steps_back: u64) -> Result<(), Answer<S::Id>> {
        if now >= self.ticks.end() {
            return Err(Answer::Exhausted);
        }
        // Time before the epoch counts as the first tick.
        let tick = self.ticks.clamped(now);
        let start = self.ticks.start_of(tick);
        if start < self.min_tick_start {
            let first = self.ticks.since(self.min_tick_start).ok_or(Answer::Exhausted)?;
            return Err(Answer::Closed { until: self.ticks.start_of(first) });
        }
        if start < self.start && steps_back == self.steps_back {
            return Err(Answer::Behind { until: self.start });
        }
        debug_assert!(
            start >= self.start || steps_back > self.steps_back,
            "a generator goes back in time only with another tick-tock bit"
        );
        (self.start, self.tick, self.steps_back) = (start, tick, steps_back);
        self.time_bits = self.source.time_bits(tick, steps_back);
        self.issued_before = self.issued;
        self.block = Block::default();
        self.taking.enter_tick();
        Ok(())
    }
}
