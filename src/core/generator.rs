//! The generator: a state machine that turns instants into IDs.

use crate::layout::Geometry;
use crate::path::Path;
use crate::{Error, Layout, SequenceRule, Share};

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
}

impl Generator {
    /// A generator that starts above the tick which holds `now`. Its first position is `position` modulo the share's
    /// size where the sequence is rolling, else 0.
    ///
    /// # Errors
    /// [`Error::InstantOutOfRange`] when the layout has no tick for `now`, [`Error::Exhausted`] when it has none after.
    pub fn above(layout: &Layout, share: &Share, now: i64, position: u64) -> Result<Self, Error> {
        let tick = match layout.tick_at(now) {
            Err(Error::InstantOutOfRange { end, .. }) if now >= end => return Err(layout.exhausted()),
            tick => tick?,
        };
        let geometry = layout.geometry;
        let size = share.size();
        Ok(Self {
            start: layout.start_of(tick),
            length: layout.tick as u64,
            time_bits: geometry.time_bits(tick),
            next: 0,
            step: 0,
            run: 0,
            random_mask: geometry.random_mask,
            issued: 0,
            run_end: position % size,
            left: 0,
            path: Path::new(&geometry, share),
            size,
            rule: layout.rule,
            epoch: layout.epoch,
            geometry,
        })
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
            self.start = self.epoch.wrapping_add((tick * self.length) as i64);
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
    /// The error for a clock past the last tick.
    pub fn exhausted(&self) -> Error {
        Error::Exhausted { layout: self.name.clone(), end: self.start_of(self.last_tick()) + self.tick }
    }
}
