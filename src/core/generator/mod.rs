//! The generator: a state machine that turns readings of the clock into IDs.
//!
//! If the clock steps back, a generator of a layout waits. A generator of snos toggles the tick-tock bit and continues in the past,
//! because no ID with the toggled bit has been made there since the clock last stepped back. If the clock steps back again to where
//! it had stepped back from, or below, the generator waits until the clock has passed that instant or is back at the latest tick.

mod block;
pub(crate) mod path;
pub(crate) mod resume;
pub(crate) mod source;
mod taking;

use self::block::Block;
use self::source::IdSource;
use self::taking::{Stop, Taking, Tick};
use crate::instant::BEGINNING;
use crate::layout::ticks::Ticks;
use crate::words::Words;
use crate::{Lanes, Progress, Start, Window};

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
    /// The clock is behind the last ID, in time that may have been used; `until` is when to ask again. The state does not change.
    ClockBehind { until: i64 },
    /// The tick of this instant, which ends at `tick_end`, is outside the window that the generator may use.
    Outside { tick_end: i64 },
    /// The words do not count any more, so what was taken from them is dropped.
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
    /// A clock that is behind the last ID.
    ClockBehind,
}

impl<Id> Answer<Id> {
    /// Returns the instant to wait for, and why.
    pub const fn wait(&self) -> Option<(i64, Reason)> {
        match *self {
            Self::Wait { until } => Some((until, Reason::NextTick)),
            Self::Ahead { until } => Some((until, Reason::Pace)),
            Self::ClockBehind { until } => Some((until, Reason::ClockBehind)),
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
/// After a step back that the generator follows, the tick-tock bit tells the IDs apart.
#[derive(Debug, Clone)]
pub struct Generator<S: IdSource> {
    /// The source of its IDs.
    pub source: S,
    // The tick of the last ID: when it began, its number, and its bits.
    start: i64,
    tick: u64,
    time_bits: u64,
    block: Block,
    taking: Taking,
    issued: u64,
    /// How many IDs had been issued when the tick began.
    issued_before: u64,
    /// Whether it has not entered a tick yet. Then the tick is the last one that may have been used.
    is_new: bool,
    ticks: Ticks,
    // The first instant at which a usable tick can begin, and for how long such instants follow.
    open_from: i64,
    open_for: u64,
    /// When the latest tick began from which the clock ever stepped back.
    stepped_back_from: i64,
    /// How often the clock stepped back.
    drifts: u64,
}

impl<S: IdSource> Generator<S> {
    /// Creates a generator whose own lane has the number `lane`, and which begins as the ledger says. The generator may use
    /// all time.
    pub fn start(source: S, lanes: &Lanes, lane: u64, start: Start) -> Self {
        let ticks = source.ticks();
        // The tick after the one that contains this instant is unused.
        let last_used = ticks.nearest(start.free_from.saturating_sub(1));
        let last_used = ticks.start_of(last_used);
        let new = Progress { start: last_used, stepped_back_from: last_used, drifts: 0 };
        let Progress { start, stepped_back_from, drifts } = start.resumed.unwrap_or(new);
        let (open_from, open_for) = Window::ALL.starts(ticks.length);
        Self {
            source,
            start,
            tick: ticks.nearest(start),
            time_bits: 0,
            block: Block::default(),
            taking: Taking::new(lanes, source.path(lanes), lane),
            issued: 0,
            issued_before: 0,
            is_new: true,
            ticks,
            open_from,
            open_for,
            stepped_back_from,
            drifts,
        }
    }

    /// Lets the next ticks begin in this window only.
    pub fn allow(&mut self, window: Window) {
        (self.open_from, self.open_for) = window.starts(self.ticks.length);
    }

    /// Continues for a source with the same bits, whose last tick may differ.
    pub fn adopt(&mut self, source: S) {
        self.ticks = source.ticks();
        self.source = source;
    }

    /// Returns where this generator has stopped.
    pub fn progress(&self) -> Progress {
        let stepped_back_from = if self.source.goes_back() { self.stepped_back_from } else { BEGINNING };
        Progress { start: self.start, stepped_back_from, drifts: self.drifts }
    }

    /// Makes the next ID at the instant `now`, if it has been taken already.
    #[inline]
    pub fn next_taken(&mut self, now: i64, argument: S::Argument) -> Option<S::Id> {
        self.block.is_ready(now.wrapping_sub(self.start) as u64).then(|| self.issue(argument))
    }

    /// Makes the next ID at the instant `now`. If none is taken, takes some from the lanes with these words.
    #[inline]
    pub fn next(&mut self, now: i64, words: &impl Words, argument: S::Argument) -> Answer<S::Id> {
        if !self.block.is_ready(now.wrapping_sub(self.start) as u64)
            && let Err(answer) = self.take(now, words)
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
    pub fn fill(&mut self, now: i64, words: &impl Words, ids: &mut [S::Id], argument: S::Argument) -> usize {
        let mut made = 0;
        while made < ids.len() {
            let Answer::Issue(id) = self.next(now, words, argument) else { break };
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

    /// When the tick of the last ID began; None before the first ID.
    pub const fn last_tick_start(&self) -> Option<i64> {
        if self.issued == 0 { None } else { Some(self.start) }
    }

    /// Takes IDs of the tick of `now`. The error is the answer to return instead of an ID.
    #[cold]
    fn take(&mut self, now: i64, words: &impl Words) -> Result<(), Answer<S::Id>> {
        let length = self.ticks.length;
        if now.wrapping_sub(self.start) as u64 >= length as u64 {
            self.enter_tick(now)?;
        } else if self.is_new {
            return Err(Answer::Wait { until: self.start + length });
        }
        let passed = now.wrapping_sub(self.start) as u64;
        if self.block.go_on(&self.taking.path, passed) {
            return Ok(());
        }
        let made = self.issued - self.issued_before;
        let tick = Tick { number: self.tick, length: length as u64, passed, made };
        self.block = self.taking.take(&tick, words, (now, self.issued)).map_err(|stop| match stop {
            Stop::UsedUp => Answer::Wait { until: self.start + length },
            Stop::Pace { until } => Answer::Ahead { until: self.start + until as i64 },
            Stop::Behind { tick } => Answer::ClockBehind { until: self.ticks.start_of(tick) },
            Stop::Dropped => Answer::Dropped,
        })?;
        Ok(())
    }

    /// Moves to the tick of `now`.
    fn enter_tick(&mut self, now: i64) -> Result<(), Answer<S::Id>> {
        let length = self.ticks.length;
        if now >= self.ticks.end() {
            return Err(Answer::Exhausted);
        }
        // Time before the epoch counts as the first tick.
        let tick = self.ticks.nearest(now);
        let start = self.ticks.start_of(tick);
        if start <= self.start && !self.source.goes_back() {
            return Err(Answer::ClockBehind { until: self.start });
        }
        if start <= self.start && start <= self.stepped_back_from {
            return Err(Answer::ClockBehind { until: self.start.min(self.stepped_back_from + length) });
        }
        if start.wrapping_sub(self.open_from) as u64 >= self.open_for {
            return Err(Answer::Outside { tick_end: start.saturating_add(length) });
        }
        if start < self.start {
            self.stepped_back_from = self.start;
            self.drifts += 1;
        }
        (self.start, self.tick, self.is_new) = (start, tick, false);
        self.time_bits = self.source.time_bits(tick, self.drifts);
        self.issued_before = self.issued;
        self.block = Block::default();
        self.taking.enter_tick();
        Ok(())
    }
}
