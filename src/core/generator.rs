//! The generator: a state machine that turns instants into IDs.

use crate::layout::Geometry;
use crate::path::Path;
use crate::{Error, Layout, Progress, SequenceRule, Share, Start, Window};

/// A generator's answer to an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<Id = u64> {
    /// A new ID.
    Issue(Id),
    /// The share is used up in this tick.
    Wait {
        /// When the next tick begins.
        until: i64,
    },
    /// The clock is behind the last ID, in time that may have been used. The generator's state does not change.
    ClockBehind {
        /// When to ask again.
        until: i64,
    },
    /// The tick of this instant is outside the window that the generator may use.
    Outside {
        /// The first instant after the tick.
        tick_end: i64,
    },
    /// The clock is past the last tick.
    Exhausted,
}

/// Makes the IDs of one share. It issues each (tick, position) at most once, whatever instants it is given.
///
/// An ID costs a comparison and an addition, because positions come in runs of equal steps; only the end of a run or of
/// a tick costs more.
#[derive(Debug, Clone)]
pub struct Generator {
    // The tick of the last ID: when it began, how long it is, its timestamp and reserved bits.
    start: i64,
    tick_length: u64,
    time_bits: u64,
    // The rest of the current run: the bits of its next ID, the step to the one after it, and how many there are.
    next: u64,
    step: u64,
    run: u64,
    random_mask: u64,
    issued: u64,
    // The position after the run, and how many IDs of the tick remain after it.
    run_end: u64,
    remaining: u64,
    path: Path,
    size: u64,
    rule: SequenceRule,
    epoch: i64,
    geometry: Geometry,
    // The first start of a tick that may be used, and how long starts may be used from there.
    open_from: i64,
    open_for: u64,
}

impl Generator {
    /// Creates a generator that starts above the tick that holds `now`. A rolling sequence begins at `position` modulo the
    /// share's size, others at 0.
    ///
    /// # Errors
    /// [`Error::InstantOutOfRange`] when the layout has no tick for `now`, [`Error::Exhausted`] when it has none after.
    pub fn starting_above(layout: &Layout, share: &Share, now: i64, position: u64) -> Result<Self, Error> {
        Ok(Self::at(layout, share, layout.tick_to_generate_in(now)?, position % share.size(), 0))
    }

    /// Creates a generator that begins as the ledger says, and in no tick before the one that holds `last_seen`.
    pub fn start(layout: &Layout, share: &Share, start: Start, last_seen: i64, position: u64) -> Self {
        if let Some(progress) = start.resumed {
            let tick = progress.start.wrapping_sub(layout.epoch) as u64 / layout.tick_length as u64;
            return Self::at(layout, share, tick, progress.position, progress.remaining);
        }
        // The tick after the one that holds this instant is unused.
        let last_used = start.free_from.saturating_sub(1);
        let before_last_seen = last_seen.saturating_sub(layout.tick_length);
        let tick = layout.tick_at(last_used.max(before_last_seen).max(layout.epoch)).unwrap_or(layout.last_tick());
        Self::at(layout, share, tick, position % share.size(), 0)
    }

    /// Creates a generator in this tick, at this position, with this many IDs remaining. It may use all time.
    fn at(layout: &Layout, share: &Share, tick: u64, position: u64, remaining: u64) -> Self {
        let geometry = layout.geometry;
        let (open_from, open_for) = Window::ALL.starts(layout.tick_length);
        Self {
            start: layout.start_of(tick),
            tick_length: layout.tick_length as u64,
            time_bits: geometry.time_bits(tick),
            next: 0,
            step: 0,
            run: 0,
            random_mask: geometry.random_mask,
            issued: 0,
            run_end: position,
            remaining,
            path: Path::new(&geometry, share),
            size: share.size(),
            rule: layout.rule,
            epoch: layout.epoch,
            geometry,
            open_from,
            open_for,
        }
    }

    /// Allows the generator to use this time, and no other, for its next ticks.
    pub fn allow(&mut self, window: Window) {
        (self.open_from, self.open_for) = window.starts(self.tick_length as i64);
    }

    /// How far this generator has got.
    pub const fn progress(&self) -> Progress {
        let (position, remaining) = (self.run_end - self.run, self.remaining + self.run);
        Progress { start: self.start, position, remaining, stepped_back_from: i64::MIN, drifts: 0 }
    }

    /// Makes the next ID at the instant `now`. It calls `random` only for layouts with random bits.
    #[inline]
    pub fn next(&mut self, now: i64, random: impl FnOnce() -> u64) -> Step {
        let into_tick = now.wrapping_sub(self.start) as u64;
        if (into_tick >= self.tick_length || self.run == 0)
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

    /// Makes as many IDs at the instant `now` as `ids`, the tick and the share have room for; returns how many.
    pub fn fill(&mut self, now: i64, ids: &mut [u64], mut random: impl FnMut() -> u64) -> usize {
        let mut made = 0;
        while made < ids.len() {
            let Step::Issue(id) = self.next(now, &mut random) else { break };
            ids[made] = id;
            // The rest of the run needs no checks.
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

    /// Microseconds from `now` to the end of the last ID's tick; 0 if `now` is outside that tick.
    #[inline]
    pub const fn remaining_in_tick(&self, now: i64) -> u64 {
        self.tick_length.saturating_sub(now.wrapping_sub(self.start) as u64)
    }

    /// IDs made so far.
    pub const fn issued(&self) -> u64 {
        self.issued
    }

    /// When the tick of the last ID began; none before the first ID.
    pub const fn last_tick_start(&self) -> Option<i64> {
        if self.issued == 0 { None } else { Some(self.start) }
    }

    /// Moves to the next run of this tick, or to the tick of `now`. Returns why it cannot, if so.
    #[cold]
    fn begin_run(&mut self, now: i64) -> Option<Step> {
        if now < self.start {
            return Some(Step::ClockBehind { until: self.start });
        }
        let mut position = self.run_end - self.run;
        if now.wrapping_sub(self.start) as u64 >= self.tick_length {
            let tick = now.wrapping_sub(self.epoch) as u64 / self.tick_length;
            if tick > self.geometry.last_tick {
                return Some(Step::Exhausted);
            }
            let start = self.epoch.wrapping_add((tick * self.tick_length) as i64);
            if start.wrapping_sub(self.open_from) as u64 >= self.open_for {
                return Some(Step::Outside { tick_end: start.saturating_add(self.tick_length as i64) });
            }
            self.start = start;
            self.time_bits = self.geometry.time_bits(tick);
            self.remaining = self.size;
            if self.rule == SequenceRule::Reset {
                position = 0;
            }
        } else if self.remaining == 0 {
            return Some(Step::Wait { until: self.start + self.tick_length as i64 });
        }
        if position == self.size {
            position = 0;
        }
        let run = self.path.run_at(position);
        let length = run.length.min(self.remaining);
        (self.next, self.step, self.run) = (run.first, run.step, length);
        self.run_end = position + length;
        self.remaining -= length;
        None
    }
}

impl Layout {
    /// Returns the tick that holds an instant at which IDs are to be made.
    ///
    /// # Errors
    /// [`Error::InstantOutOfRange`] before the epoch, [`Error::Exhausted`] after the last tick.
    pub fn tick_to_generate_in(&self, now: i64) -> Result<u64, Error> {
        match self.tick_at(now) {
            Err(Error::InstantOutOfRange { end, .. }) if now >= end => Err(self.exhausted()),
            tick => tick,
        }
    }

    /// Returns the error for a clock past the last tick.
    pub fn exhausted(&self) -> Error {
        Error::Exhausted { layout: self.name.clone(), end: self.start_of(self.last_tick()) + self.tick_length }
    }
}
