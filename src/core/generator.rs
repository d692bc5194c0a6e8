//! The generator: a state machine that turns instants into IDs.

use crate::layout::Geometry;
use crate::path::Path;
use crate::{Error, Layout, SequenceRule, Share, Start, Trace, Window};

/// What a generator answers to an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<Id = u64> {
    /// A new ID.
    Issue(Id),
    /// The share is used up in this tick; the next one begins at this instant.
    Wait {
        /// When to ask again.
        until: i64,
    },
    /// The clock is behind, in a time that may be used already. The generator stays where it is.
    ClockBehind {
        /// When to ask again.
        until: i64,
    },
    /// The tick of this instant is not within the window that the generator may use.
    Outside {
        /// First instant after the tick.
        tick_end: i64,
    },
    /// The clock is past the last tick.
    Exhausted,
}

/// Makes the IDs of one share. Each (tick, position) is issued at most once, whatever instants it is given.
///
/// An ID costs a comparison and an addition: positions are taken in runs of equal steps, and only the end of a run or
/// of a tick needs more.
#[derive(Debug, Clone)]
pub struct Generator {
    // The tick of the last ID: when it began, how long ticks are, its timestamp and reserved bits.
    start: i64,
    length: u64,
    time_bits: u64,
    // The rest of the current run: bits of its next ID, distance to the one after it, how many.
    next: u64,
    step: u64,
    run: u64,
    random_mask: u64,
    issued: u64,
    // Beyond the run: the position after it, and how many more the tick allows.
    run_end: u64,
    left: u64,
    path: Path,
    size: u64,
    rule: SequenceRule,
    epoch: i64,
    geometry: Geometry,
    // Starts of ticks that may be used: the first one, and for how long from there.
    open_from: i64,
    open_for: u64,
}

impl Generator {
    /// A generator that starts above the tick which holds `now`. Its first position is `position` modulo the share's
    /// size where the sequence is rolling, else 0.
    ///
    /// # Errors
    /// [`Error::InstantOutOfRange`] when the layout has no tick for `now`, [`Error::Exhausted`] when it has none after.
    pub fn above(layout: &Layout, share: &Share, now: i64, position: u64) -> Result<Self, Error> {
        Ok(Self::at(layout, share, layout.tick_to_generate_in(now)?, position % share.size(), 0))
    }

    /// A generator that begins as the ledger says, and not in a tick before the one which holds `seen`.
    pub fn start(layout: &Layout, share: &Share, start: Start, seen: i64, position: u64) -> Self {
        if let Some(trace) = start.resumed {
            let tick = trace.start.wrapping_sub(layout.epoch) as u64 / layout.tick as u64;
            return Self::at(layout, share, tick, trace.position, trace.left);
        }
        // Nothing is used of the tick that comes after this one.
        let last_used = start.free_from.saturating_sub(1);
        let before_seen = seen.saturating_sub(layout.tick);
        let tick = layout.tick_at(last_used.max(before_seen).max(layout.epoch)).unwrap_or(layout.last_tick());
        Self::at(layout, share, tick, position % share.size(), 0)
    }

    /// A generator in this tick, at this position, with so many IDs left. It may use any time.
    fn at(layout: &Layout, share: &Share, tick: u64, position: u64, left: u64) -> Self {
        let geometry = layout.geometry;
        let (open_from, open_for) = Window::ALL.starts(layout.tick);
        Self {
            start: layout.start_of(tick),
            length: layout.tick as u64,
            time_bits: geometry.time_bits(tick),
            next: 0,
            step: 0,
            run: 0,
            random_mask: geometry.random_mask,
            issued: 0,
            run_end: position,
            left,
            path: Path::new(&geometry, share),
            size: share.size(),
            rule: layout.rule,
            epoch: layout.epoch,
            geometry,
            open_from,
            open_for,
        }
    }

    /// Allows this time and no other for ticks to come.
    pub fn allow(&mut self, window: Window) {
        (self.open_from, self.open_for) = window.starts(self.length as i64);
    }

    /// Where this generator has got to.
    pub const fn trace(&self) -> Trace {
        let (position, left) = (self.run_end - self.run, self.left + self.run);
        Trace { start: self.start, position, left, behind: i64::MIN, drifts: 0 }
    }

    /// The next ID at the instant `now`. `random` is asked only by layouts with random bits.
    #[inline]
    pub fn next(&mut self, now: i64, random: impl FnOnce() -> u64) -> Step {
        let into_tick = now.wrapping_sub(self.start) as u64;
        if (into_tick >= self.length || self.run == 0)
            && let Some(step) = self.begin_run(now)
        {
            return step;
        }
        let mut id = self.time_bits | self.next;
        self.next = self.next.wrapping_add(self.step);
        self.run -= 1;
        self.issued += 1;
        if self.random_mask != 0 {
            id |= random() & self.random_mask;
        }
        Step::Issue(id)
    }

    /// As many of the next IDs at the instant `now` as the tick and the share allow; returns how many those are.
    pub fn fill(&mut self, now: i64, ids: &mut [u64], mut random: impl FnMut() -> u64) -> usize {
        let mut made = 0;
        while made < ids.len() {
            let Step::Issue(id) = self.next(now, &mut random) else { break };
            ids[made] = id;
            // The rest of the run needs no more looking at.
            let rest = (ids.len() - made - 1).min(self.run as usize);
            for id in &mut ids[made + 1..][..rest] {
                *id = self.time_bits | self.next;
                self.next = self.next.wrapping_add(self.step);
                if self.random_mask != 0 {
                    *id |= random() & self.random_mask;
                }
            }
            self.run -= rest as u64;
            self.issued += rest as u64;
            made += 1 + rest;
        }
        made
    }

    /// For how many microseconds from this instant on the tick of the last ID goes on; 0 where it is not in that tick.
    #[inline]
    pub const fn left_of_tick(&self, now: i64) -> u64 {
        self.length.saturating_sub(now.wrapping_sub(self.start) as u64)
    }

    /// IDs made so far.
    pub const fn issued(&self) -> u64 {
        self.issued
    }

    /// When the tick of the last ID began; none before the first.
    pub const fn last_tick_start(&self) -> Option<i64> {
        if self.issued == 0 { None } else { Some(self.start) }
    }

    /// Moves to the next run of this tick, or to the tick of `now`; or says why there is no ID now.
    #[cold]
    fn begin_run(&mut self, now: i64) -> Option<Step> {
        if now < self.start {
            return Some(Step::ClockBehind { until: self.start });
        }
        let mut position = self.run_end - self.run;
        if now.wrapping_sub(self.start) as u64 >= self.length {
            let tick = now.wrapping_sub(self.epoch) as u64 / self.length;
            if tick > self.geometry.last_tick {
                return Some(Step::Exhausted);
            }
            let start = self.epoch.wrapping_add((tick * self.length) as i64);
            if start.wrapping_sub(self.open_from) as u64 >= self.open_for {
                return Some(Step::Outside { tick_end: start.saturating_add(self.length as i64) });
            }
            self.start = start;
            self.time_bits = self.geometry.time_bits(tick);
            self.left = self.size;
            if self.rule == SequenceRule::Reset {
                position = 0;
            }
        } else if self.left == 0 {
            return Some(Step::Wait { until: self.start + self.length as i64 });
        }
        if position == self.size {
            position = 0;
        }
        let run = self.path.run_at(position);
        let length = run.length.min(self.left);
        (self.next, self.step, self.run) = (run.first, run.step, length);
        self.run_end = position + length;
        self.left -= length;
        None
    }
}

impl Layout {
    /// The tick that holds an instant at which IDs are to be made.
    ///
    /// # Errors
    /// [`Error::InstantOutOfRange`] before the epoch, [`Error::Exhausted`] after the last tick.
    pub fn tick_to_generate_in(&self, now: i64) -> Result<u64, Error> {
        match self.tick_at(now) {
            Err(Error::InstantOutOfRange { end, .. }) if now >= end => Err(self.exhausted()),
            tick => tick,
        }
    }

    /// The error for a clock past the last tick.
    pub fn exhausted(&self) -> Error {
        Error::Exhausted { layout: self.name.clone(), end: self.start_of(self.last_tick()) + self.tick }
    }
}
