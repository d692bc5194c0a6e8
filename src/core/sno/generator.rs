//! The generator of snos: tick-tock.
//!
//! When the clock steps back, the generator toggles the tick-tock bit and continues in the past: IDs with the toggled bit
//! have not been made above the last unit that the clock stepped back from. When the clock steps back to that unit or
//! below, the generator waits until the clock is past it, or back at the highest unit.

use super::{EPOCH, LAST_UNIT, Sno, SnoParts, UNIT, exhausted, start_of};
use crate::generator::path::Path;
use crate::generator::walk::Walk;
use crate::layout::bits::{Bits, Scattered};
use crate::{Answer, Error, Progress, Remaining, Resume, SequenceRule, Share, Start, Window};

/// The last 32 bits of a sno.
const PARTITION: Bits = Bits { shift: 16, width: 16 };
const SEQUENCE: Bits = Bits { shift: 0, width: 16 };

/// Makes the snos of one share, whose workers are partitions.
#[derive(Debug, Clone)]
pub struct SnoGenerator {
    /// In the unit of the last ID.
    walk: Walk,
    /// The unit of the last ID.
    highest: u64,
    /// The highest unit that the clock ever stepped back from.
    stepped_back_from: u64,
    /// How often the clock stepped back; the lowest bit is the tick-tock bit.
    drifts: u64,
    issued: u64,
    /// The first start of a unit that may be used, and how long starts may be used from there.
    open_from: i64,
    open_for: u64,
}

impl SnoGenerator {
    /// Creates a generator that starts above the unit that holds `now`.
    pub fn starting_above(share: Share, now: i64) -> Result<Self, Error> {
        let position = share.size();
        Ok(Self::restore(share, unit_to_generate_in(now)?, 0, 0, position))
    }

    /// Creates a generator that begins as the ledger says. Time before `last_seen` is the past.
    pub fn start(share: Share, start: Start, last_seen: i64) -> Self {
        if let Some(progress) = start.resumed {
            let [highest, stepped_back_from] = [progress.start, progress.stepped_back_from].map(unit_of);
            return Self::restore(share, highest, stepped_back_from, progress.drifts, progress.position);
        }
        // The unit after the one that holds this instant is unused.
        let stepped_back_from = unit_of(start.free_from.saturating_sub(1));
        let before_last_seen = unit_of(last_seen.saturating_sub(UNIT));
        let position = share.size();
        Self::restore(share, before_last_seen.max(stepped_back_from), stepped_back_from, 0, position)
    }

    /// Creates a generator with the state of another one. It may use all time.
    pub fn restore(share: Share, highest: u64, stepped_back_from: u64, drifts: u64, position: u64) -> Self {
        let (open_from, open_for) = Window::ALL.starts(UNIT);
        let path = Path::new(Scattered::one(PARTITION), SEQUENCE, &share);
        let walk = Walk::at(path, SequenceRule::Reset, UNIT, position, share.size() - position);
        Self { walk, highest, stepped_back_from, drifts, issued: 0, open_from, open_for }
    }

    /// Allows the generator to use this time, and no other, for its next units.
    pub fn allow(&mut self, window: Window) {
        (self.open_from, self.open_for) = window.starts(UNIT);
    }

    /// How far this generator has got.
    pub fn progress(&self) -> Progress {
        Progress {
            start: start_of(self.highest),
            position: self.walk.position(),
            remaining: self.walk.remaining(),
            stepped_back_from: start_of(self.stepped_back_from),
            drifts: self.drifts,
        }
    }

    /// Makes the next sno at the instant `now`.
    #[inline]
    pub fn next(&mut self, now: i64, metabyte: u8) -> Answer<Sno> {
        if !self.walk.is_ready(now.wrapping_sub(start_of(self.highest)) as u64)
            && let Some(answer) = self.begin_run(now)
        {
            return answer;
        }
        let bits = self.walk.take();
        self.issued += 1;
        let parts = SnoParts {
            unit: self.highest,
            tick_tock: self.drifts & 1 == 1,
            metabyte,
            partition: PARTITION.get(bits) as u16,
            sequence: SEQUENCE.get(bits) as u16,
        };
        Answer::Issue(parts.pack())
    }

    /// Moves to the next run of this unit, or to the unit of `now`. Returns why it cannot, if so.
    #[cold]
    fn begin_run(&mut self, now: i64) -> Option<Answer<Sno>> {
        // Time before the epoch counts as the first unit.
        let unit = Sno::unit_at(now).unwrap_or(if now < start_of(0) { 0 } else { LAST_UNIT + 1 });
        if unit > LAST_UNIT {
            return Some(Answer::Exhausted);
        }
        let start = start_of(unit);
        if unit != self.highest {
            if unit < self.highest && unit <= self.stepped_back_from {
                return Some(Answer::ClockBehind { until: start_of(self.highest.min(self.stepped_back_from + 1)) });
            }
            if start.wrapping_sub(self.open_from) as u64 >= self.open_for {
                return Some(Answer::Outside { tick_end: start + UNIT });
            }
            if unit < self.highest {
                self.stepped_back_from = self.highest;
                self.drifts += 1;
            }
            self.highest = unit;
            self.walk.enter_tick();
        }
        let is_left = self.walk.begin_run(now.saturating_sub(start).max(0) as u64);
        (!is_left).then(|| Answer::Wait { until: start + UNIT })
    }

    /// How long, from `now` on, the unit and the step of the last ID last.
    #[inline]
    pub const fn remaining(&self, now: i64) -> Remaining {
        let into_unit = now.wrapping_sub(start_of(self.highest)) as u64;
        Remaining { of_tick: (UNIT as u64).saturating_sub(into_unit), of_step: self.walk.remaining_in_step(into_unit) }
    }

    /// IDs made so far.
    pub const fn issued(&self) -> u64 {
        self.issued
    }

    /// When the unit of the last ID began; none before the first ID.
    pub const fn last_unit_start(&self) -> Option<i64> {
        if self.issued == 0 { None } else { Some(start_of(self.highest)) }
    }

    /// The highest unit, the highest unit stepped back from, the number of steps back, and the IDs made in the unit.
    pub const fn state(&self) -> (u64, u64, u64, u64) {
        (self.highest, self.stepped_back_from, self.drifts, self.walk.position())
    }
}

/// Returns the unit that holds an instant at which IDs are to be made.
///
/// # Errors
/// [`Error::InstantOutOfRange`] before the epoch, [`Error::Exhausted`] after the last unit.
pub fn unit_to_generate_in(now: i64) -> Result<u64, Error> {
    match Sno::unit_at(now) {
        Err(Error::InstantOutOfRange { end, .. }) if now >= end => Err(exhausted()),
        unit => unit,
    }
}

/// The unit that holds an instant, limited to the first and the last one.
fn unit_of(instant: i64) -> u64 {
    (((instant.max(EPOCH) - EPOCH) / UNIT) as u64).min(LAST_UNIT)
}

impl Resume for SnoGenerator {
    type Id = Sno;
    type Origin = Share;
    const GOES_BACK: bool = true;

    fn start(share: &Share, start: Start, last_seen: i64) -> Self {
        Self::start(*share, start, last_seen)
    }

    fn allow(&mut self, window: Window) {
        self.allow(window);
    }

    fn progress(&self) -> Progress {
        self.progress()
    }

    fn issued(&self) -> u64 {
        self.issued()
    }
}
