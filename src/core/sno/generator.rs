//! The generator of snos: tick-tock.
//!
//! A step back of the clock does not stop it. The first one toggles the tick-tock bit, and IDs go on in the past: for the
//! bit as it was nothing above the highest unit is used, for the toggled one nothing above the last unit left behind. A
//! step back to or below that unit has to wait, until the clock is past it or back at the highest.

use super::{EPOCH, LAST_UNIT, Sno, SnoParts, UNIT, exhausted, start_of};
use crate::{Error, Share, Start, Step, Trace, Window};

/// Makes the snos of one share: partitions for workers, and sequence numbers.
#[derive(Debug, Clone)]
pub struct SnoGenerator {
    share: Share,
    /// The unit of the last ID.
    highest: u64,
    /// The highest unit that was ever left behind by a step back.
    left_behind: u64,
    /// How many steps back there were; the lowest bit is the tick-tock bit.
    drifts: u64,
    /// How many of the share are used in this unit.
    position: u64,
    issued: u64,
    /// Starts of units that may be used: the first one, and for how long from there.
    open_from: i64,
    open_for: u64,
}

impl SnoGenerator {
    /// A generator that starts above the unit which holds `now`. The workers of the share are its partitions.
    pub fn above(share: Share, now: i64) -> Result<Self, Error> {
        let position = share.size();
        Ok(Self::restore(share, unit_to_generate_in(now)?, 0, 0, position))
    }

    /// A generator that begins as the ledger says. `seen` is where it takes the present to be: before it is the past.
    pub fn start(share: Share, start: Start, seen: i64) -> Self {
        if let Some(trace) = start.resumed {
            let [highest, left_behind] = [trace.start, trace.behind].map(unit_of);
            return Self::restore(share, highest, left_behind, trace.drifts, share.size() - trace.left);
        }
        // Nothing is used of the unit that comes after this one.
        let left_behind = unit_of(start.free_from.saturating_sub(1));
        let before_seen = unit_of(seen.saturating_sub(UNIT));
        let position = share.size();
        Self::restore(share, before_seen.max(left_behind), left_behind, 0, position)
    }

    /// A generator with the state that another one had. It may use any time.
    pub fn restore(share: Share, highest: u64, left_behind: u64, drifts: u64, position: u64) -> Self {
        let (open_from, open_for) = Window::ALL.starts(UNIT);
        Self { share, highest, left_behind, drifts, position, issued: 0, open_from, open_for }
    }

    /// Allows this time and no other for units to come.
    pub fn allow(&mut self, window: Window) {
        (self.open_from, self.open_for) = window.starts(UNIT);
    }

    /// Where this generator has got to.
    pub fn trace(&self) -> Trace {
        Trace {
            start: start_of(self.highest),
            position: self.position,
            left: self.share.size() - self.position,
            behind: start_of(self.left_behind),
            drifts: self.drifts,
        }
    }

    /// The next sno at the instant `now`.
    pub fn next(&mut self, now: i64, metabyte: u8) -> Step<Sno> {
        // Before the epoch is behind everything; the first unit stands for it.
        let unit = Sno::unit_at(now).unwrap_or(if now < start_of(0) { 0 } else { LAST_UNIT + 1 });
        if unit > LAST_UNIT {
            return Step::Exhausted;
        }
        if unit == self.highest {
            if self.position == self.share.size() {
                return Step::Wait { until: start_of(unit) + UNIT };
            }
        } else {
            if unit < self.highest && unit <= self.left_behind {
                return Step::ClockBehind { until: start_of(self.highest.min(self.left_behind + 1)) };
            }
            let start = start_of(unit);
            if start.wrapping_sub(self.open_from) as u64 >= self.open_for {
                return Step::Outside { tick_end: start + UNIT };
            }
            if unit < self.highest {
                self.left_behind = self.highest;
                self.drifts += 1;
            }
            self.highest = unit;
            self.position = 0;
        }
        let (partition, sequence) =
            (self.position / self.share.sequences.count, self.position % self.share.sequences.count);
        self.position += 1;
        self.issued += 1;
        let parts = SnoParts {
            unit,
            tick_tock: self.drifts & 1 == 1,
            metabyte,
            partition: (self.share.workers.first + partition) as u16,
            sequence: (self.share.sequences.first + sequence) as u16,
        };
        Step::Issue(parts.pack())
    }

    /// For how many microseconds from this instant on the unit of the last ID goes on; 0 where it is not in that unit.
    #[inline]
    pub const fn left_of_unit(&self, now: i64) -> u64 {
        (UNIT as u64).saturating_sub(now.wrapping_sub(start_of(self.highest)) as u64)
    }

    /// IDs made so far.
    pub const fn issued(&self) -> u64 {
        self.issued
    }

    /// When the unit of the last ID began; none before the first.
    pub const fn last_unit_start(&self) -> Option<i64> {
        if self.issued == 0 { None } else { Some(start_of(self.highest)) }
    }

    /// Highest unit, highest unit left behind, number of steps back, IDs made in the unit.
    pub const fn state(&self) -> (u64, u64, u64, u64) {
        (self.highest, self.left_behind, self.drifts, self.position)
    }
}

/// The unit that holds an instant at which IDs are to be made.
///
/// # Errors
/// [`Error::InstantOutOfRange`] before the epoch, [`Error::Exhausted`] after the last unit.
pub fn unit_to_generate_in(now: i64) -> Result<u64, Error> {
    match Sno::unit_at(now) {
        Err(Error::InstantOutOfRange { end, .. }) if now >= end => Err(exhausted()),
        unit => unit,
    }
}

/// The unit that holds an instant, or the first or the last one.
fn unit_of(instant: i64) -> u64 {
    (((instant.max(EPOCH) - EPOCH) / UNIT) as u64).min(LAST_UNIT)
}
