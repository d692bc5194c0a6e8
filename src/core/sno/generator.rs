//! The generator of snos: tick-tock.
//!
//! A step back of the clock does not stop it. The first one toggles the tick-tock bit, and IDs go on in the past: for the
//! bit as it was nothing above the highest unit is used, for the toggled one nothing above the last unit left behind. A
//! step back to or below that unit has to wait, until the clock is past it or back at the highest.

use super::{LAST_UNIT, Sno, SnoParts, UNIT, exhausted, start_of};
use crate::{Error, Share, Step};

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
}

impl SnoGenerator {
    /// A generator that starts above the unit which holds `now`. The workers of the share are its partitions.
    pub fn above(share: Share, now: i64) -> Result<Self, Error> {
        let highest = match Sno::unit_at(now) {
            Err(Error::InstantOutOfRange { end, .. }) if now >= end => return Err(exhausted()),
            unit => unit?,
        };
        Ok(Self { share, highest, left_behind: 0, drifts: 0, position: share.size(), issued: 0 })
    }

    /// A generator with the state that another one had.
    pub const fn restore(share: Share, highest: u64, left_behind: u64, drifts: u64, position: u64) -> Self {
        Self { share, highest, left_behind, drifts, position, issued: 0 }
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
            if unit < self.highest {
                if unit <= self.left_behind {
                    return Step::ClockBehind { until: start_of(self.highest.min(self.left_behind + 1)) };
                }
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
