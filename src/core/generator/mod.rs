//! The generator: a state machine that turns readings of the clock into IDs.
//!
//! A session that uses up a tick makes the IDs of the following ticks at the pace of the clock, until it pauses for two ticks.
//! Without that rule, several busy sessions would run ahead of the clock by different amounts, insert between each other's IDs, and
//! leave index pages half empty.
//!
//! If the clock steps back, a generator of a layout waits. A generator of snos toggles the tick-tock bit and continues in the past,
//! because no ID with the toggled bit has been made there since the clock last stepped back. If the clock steps back again to where
//! it had stepped back from, or below, the generator waits until the clock has passed that instant or is back at the latest tick.

pub(crate) mod path;
pub(crate) mod resume;
pub(crate) mod source;
pub(crate) mod walk;

use self::source::IdSource;
use self::walk::Walk;
use crate::layout::ticks::Ticks;
use crate::{Progress, Share, Start, Window};

/// After how many ticks without an ID a generator may run ahead of the clock again.
const REST: i64 = 2;

/// A generator's answer to an instant.
#[allow(missing_docs, reason = "the answers say what their instants are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<Id = u64> {
    /// A new ID.
    Issue(Id),
    /// The share is used up in this tick; `until` is when the next tick begins.
    Wait { until: i64 },
    /// The generator keeps pace and is ahead of the clock; `until` is when to ask again.
    Ahead { until: i64 },
    /// The clock is behind the last ID, in time that may have been used; `until` is when to ask again. The state does not change.
    ClockBehind { until: i64 },
    /// The tick of this instant, which ends at `tick_end`, is outside the window that the generator may use.
    Outside { tick_end: i64 },
    /// The clock is past the last tick.
    Exhausted,
}

/// How much longer something lasts, in microseconds; 0 if it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// The tick of the last ID.
    pub of_tick: u64,
    /// The step of the next ID.
    pub of_step: u64,
}

/// Makes the IDs of one share. It issues each (tick, position) at most once, even if readings of the clock go back or jump. After a
/// step back that the generator follows, the tick-tock bit tells the IDs apart.
#[derive(Debug, Clone)]
pub struct Generator<S: IdSource> {
    /// The source of its IDs.
    pub source: S,
    // The tick of the last ID: when it began, and its bits.
    start: i64,
    time_bits: u64,
    walk: Walk,
    issued: u64,
    /// Whether the generator has used up a tick, and keeps pace with the clock since.
    keeps_pace: bool,
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
    /// Creates a generator that begins as the ledger says, in no tick before the one that contains `last_seen`; earlier time is the
    /// past. It may use all time. A rolling sequence begins at `position`, modulo the share's IDs of a step; other sequences begin
    /// at 0.
    pub fn start(source: S, share: &Share, start: Start, last_seen: i64, position: u64) -> Self {
        let ticks = source.ticks();
        // The tick after the one that contains this instant is unused.
        let last_used = ticks.nearest(start.free_from.saturating_sub(1));
        let before_last_seen = ticks.nearest(last_seen.saturating_sub(ticks.length));
        let new = Progress {
            start: ticks.start_of(last_used.max(before_last_seen)),
            position: position % share.size(),
            remaining: 0,
            stepped_back_from: ticks.start_of(last_used),
            drifts: 0,
        };
        let Progress { start, position, remaining, stepped_back_from, drifts } = start.resumed.unwrap_or(new);
        let (open_from, open_for) = Window::ALL.starts(ticks.length);
        Self {
            source,
            start,
            time_bits: source.time_bits(ticks.nearest(start), drifts),
            walk: Walk::at(source.path(share), source.rule(), ticks.length, position, remaining),
            issued: 0,
            keeps_pace: false,
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

    /// Continues for a source with the same bits, whose sequence rule and last tick may differ.
    pub fn adopt(&mut self, source: S) {
        self.ticks = source.ticks();
        self.walk.follow(source.rule());
        self.source = source;
    }

    /// Returns where this generator has stopped.
    pub fn progress(&self) -> Progress {
        let stepped_back_from = if S::GOES_BACK { self.stepped_back_from } else { i64::MIN };
        let (position, remaining) = (self.walk.position(), self.walk.remaining());
        Progress { start: self.start, position, remaining, stepped_back_from, drifts: self.drifts }
    }

    /// Makes the next ID at the instant `now`.
    #[inline]
    pub fn next(&mut self, now: i64, argument: S::Argument) -> Answer<S::Id> {
        if !self.walk.is_ready(now.wrapping_sub(self.start) as u64)
            && let Err(answer) = self.begin_run(now)
        {
            return answer;
        }
        self.issued += 1;
        Answer::Issue(self.source.id(self.time_bits, self.walk.take(), argument))
    }

    /// Makes IDs at the instant `now`, up to the length of `ids` and as long as the tick and the share have room. Returns how many.
    pub fn fill(&mut self, now: i64, ids: &mut [S::Id], argument: S::Argument) -> usize {
        let mut made = 0;
        while made < ids.len() {
            let Answer::Issue(id) = self.next(now, argument) else { break };
            ids[made] = id;
            // The rest of the run needs no checks.
            let rest = (ids.len() - made - 1).min(self.walk.run() as usize);
            for id in &mut ids[made + 1..][..rest] {
                *id = self.source.id(self.time_bits, self.walk.take(), argument);
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
            of_step: self.walk.remaining_in_step(into_tick),
        }
    }

    /// The share whose IDs it makes.
    pub const fn share(&self) -> &Share {
        self.walk.share()
    }

    /// IDs made so far.
    pub const fn issued(&self) -> u64 {
        self.issued
    }

    /// When the tick of the last ID began; None before the first ID.
    pub const fn last_tick_start(&self) -> Option<i64> {
        if self.issued == 0 { None } else { Some(self.start) }
    }

    /// Moves to the next run of this tick, or to the tick of `now`. The error is the answer to return instead of an ID.
    #[cold]
    fn begin_run(&mut self, now: i64) -> Result<(), Answer<S::Id>> {
        let length = self.ticks.length;
        if now.wrapping_sub(self.start) as u64 >= length as u64 {
            self.enter_tick(now)?;
        }
        self.walk.begin_run(now.wrapping_sub(self.start) as u64, self.keeps_pace).map_err(|until| {
            let until = self.start + until as i64;
            if until < self.start + length {
                return Answer::Ahead { until };
            }
            // Before its first ID, the generator has used up nothing, and just waits for the tick to begin.
            self.keeps_pace |= self.issued > 0;
            Answer::Wait { until }
        })
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
        if start <= self.start && !S::GOES_BACK {
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
        self.keeps_pace &= start.saturating_sub(self.start) / length <= REST;
        self.start = start;
        self.time_bits = self.source.time_bits(tick, self.drifts);
        self.walk.enter_tick();
        Ok(())
    }
}
