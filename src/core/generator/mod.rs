//! The generator: a state machine that turns instants into IDs.

pub(crate) mod path;
pub(crate) mod resume;
pub(crate) mod walk;

use self::path::Path;
use self::walk::Walk;
use crate::layout::geometry::Geometry;
use crate::{Error, Layout, Progress, Share, Start, Window};

/// A generator's answer to an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<Id = u64> {
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

/// How long something lasts, in microseconds from an instant on; 0 where it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// The tick of the last ID.
    pub of_tick: u64,
    /// The step of the next ID.
    pub of_step: u64,
}

/// Makes the IDs of one share. It issues each (tick, position) at most once, whatever instants it is given.
#[derive(Debug, Clone)]
pub struct Generator {
    // The tick of the last ID: when it began, how long it is, its timestamp and reserved bits.
    start: i64,
    tick_length: u64,
    time_bits: u64,
    walk: Walk,
    random_mask: u64,
    issued: u64,
    epoch: i64,
    geometry: Geometry,
    // The first start of a tick that may be used, and how long starts may be used from there.
    open_from: i64,
    open_for: u64,
}

impl Generator {
    /// Creates a generator that starts above the tick that holds `now`. A rolling sequence begins at `position`, modulo
    /// what the share has of a step; others at 0.
    ///
    /// # Errors
    /// [`Error::InstantOutOfRange`] when the layout has no tick for `now`, [`Error::Exhausted`] when it has none after.
    pub fn starting_above(layout: &Layout, share: &Share, now: i64, position: u64) -> Result<Self, Error> {
        Ok(Self::above(layout, share, layout.tick_to_generate_in(now)?, position))
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
        Self::above(layout, share, tick, position)
    }

    /// Creates a generator that starts above this tick.
    fn above(layout: &Layout, share: &Share, tick: u64, position: u64) -> Self {
        Self::at(layout, share, tick, position % share.size(), 0)
    }

    /// Creates a generator in this tick, at this position, with this many IDs remaining. It may use all time.
    fn at(layout: &Layout, share: &Share, tick: u64, position: u64, remaining: u64) -> Self {
        let geometry = layout.geometry;
        let (open_from, open_for) = Window::ALL.starts(layout.tick_length);
        let path = Path::new(geometry.worker, geometry.sequence, share);
        Self {
            start: layout.start_of(tick),
            tick_length: layout.tick_length as u64,
            time_bits: geometry.time_bits(tick),
            walk: Walk::at(path, layout.rule, layout.tick_length, position, remaining),
            random_mask: geometry.random_mask,
            issued: 0,
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

    /// Goes on for a layout of the same bits, which may have another sequence rule and last tick.
    pub fn adopt(&mut self, layout: &Layout) {
        self.geometry = layout.geometry;
        self.walk.follow(layout.rule);
    }

    /// How far this generator has got.
    pub const fn progress(&self) -> Progress {
        let (position, remaining) = (self.walk.position(), self.walk.remaining());
        Progress { start: self.start, position, remaining, stepped_back_from: i64::MIN, drifts: 0 }
    }

    /// Makes the next ID at the instant `now`. It calls `random` only for layouts with random bits.
    #[inline]
    pub fn next(&mut self, now: i64, random: impl FnOnce() -> u64) -> Answer {
        if !self.walk.is_ready(now.wrapping_sub(self.start) as u64)
            && let Some(answer) = self.begin_run(now)
        {
            return answer;
        }
        let mut id = self.time_bits | self.walk.take();
        self.issued += 1;
        if self.random_mask != 0 {
            id |= random() & self.random_mask;
        }
        Answer::Issue(id)
    }

    /// Makes as many IDs at the instant `now` as `ids`, the tick and the share have room for; returns how many.
    pub fn fill(&mut self, now: i64, ids: &mut [u64], mut random: impl FnMut() -> u64) -> usize {
        let mut made = 0;
        while made < ids.len() {
            let Answer::Issue(id) = self.next(now, &mut random) else { break };
            ids[made] = id;
            // The rest of the run needs no checks.
            let rest = (ids.len() - made - 1).min(self.walk.run() as usize);
            for id in &mut ids[made + 1..][..rest] {
                *id = self.time_bits | self.walk.take();
                if self.random_mask != 0 {
                    *id |= random() & self.random_mask;
                }
            }
            self.issued += rest as u64;
            made += 1 + rest;
        }
        made
    }

    /// How long, from `now` on, the tick and the step of the last ID last.
    #[inline]
    pub const fn remaining(&self, now: i64) -> Remaining {
        let into_tick = now.wrapping_sub(self.start) as u64;
        Remaining {
            of_tick: self.tick_length.saturating_sub(into_tick),
            of_step: self.walk.remaining_in_step(into_tick),
        }
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
    fn begin_run(&mut self, now: i64) -> Option<Answer> {
        if now < self.start {
            return Some(Answer::ClockBehind { until: self.start });
        }
        if now.wrapping_sub(self.start) as u64 >= self.tick_length {
            let tick = now.wrapping_sub(self.epoch) as u64 / self.tick_length;
            if tick > self.geometry.last_tick {
                return Some(Answer::Exhausted);
            }
            let start = self.epoch.wrapping_add((tick * self.tick_length) as i64);
            if start.wrapping_sub(self.open_from) as u64 >= self.open_for {
                return Some(Answer::Outside { tick_end: start.saturating_add(self.tick_length as i64) });
            }
            self.start = start;
            self.time_bits = self.geometry.time_bits(tick);
            self.walk.enter_tick();
        }
        let is_left = self.walk.begin_run(now.wrapping_sub(self.start) as u64);
        (!is_left).then(|| Answer::Wait { until: self.start + self.tick_length as i64 })
    }
}
