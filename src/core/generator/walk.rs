//! A generator's walk through its share, tick after tick.
//!
//! Positions are grouped into runs with equal strides, so that most IDs cost a comparison and an addition. A walk follows the
//! clock: when a step of the tick has passed, the walk leaves out the step's unused positions. It may be ahead of the clock, up to
//! the end of the tick, or up to [`AHEAD`] if it keeps pace.

use super::path::{Path, Run};
use crate::{SequenceRule, Share};

/// How far a walk that keeps pace may be ahead of the clock, in microseconds; at least a step.
const AHEAD: u64 = 256;
/// If steps last longer than this, in microseconds, a walk does not keep pace, because it would have to wait for each ID.
const LONGEST_STEP: u64 = 1000;

#[derive(Debug, Clone)]
pub(crate) struct Walk {
    // The rest of the current run: the bits of its next ID, the stride to the following ID, and how many IDs are left.
    next: u64,
    stride: u64,
    run: u64,
    /// After this many microseconds of the tick, the run is behind the clock.
    step_end: u64,
    // The position after the run, and how many IDs of the tick remain after the run.
    run_end: u64,
    remaining: u64,
    path: Path,
    rule: SequenceRule,
    tick_length: u64,
}

impl Walk {
    /// Creates a walk at a position in a tick, with `remaining` IDs left in the tick.
    pub const fn at(path: Path, rule: SequenceRule, tick_length: i64, position: u64, remaining: u64) -> Self {
        let tick_length = tick_length as u64;
        Self { next: 0, stride: 0, run: 0, step_end: 0, run_end: position, remaining, path, rule, tick_length }
    }

    /// The position of the next ID, unless a step or the tick ends first.
    pub const fn position(&self) -> u64 {
        self.run_end - self.run
    }

    /// The share that it walks through.
    pub const fn share(&self) -> &Share {
        self.path.share()
    }

    /// How many IDs are left in the tick, unless a step ends first.
    pub const fn remaining(&self) -> u64 {
        self.remaining + self.run
    }

    /// Whether [`Self::take`] may be called, this many microseconds into the tick.
    #[inline]
    pub const fn is_ready(&self, into_tick: u64) -> bool {
        into_tick < self.step_end && self.run > 0
    }

    /// Returns how many microseconds remain until the run is behind the clock.
    #[inline]
    pub const fn remaining_in_step(&self, into_tick: u64) -> u64 {
        self.step_end.saturating_sub(into_tick)
    }

    /// Returns the worker and sequence bits of the next ID.
    #[inline]
    pub const fn take(&mut self) -> u64 {
        let bits = self.next;
        self.next = self.next.wrapping_add(self.stride);
        self.run -= 1;
        bits
    }

    /// How many IDs can be taken in a row without reading the clock.
    #[inline]
    pub const fn run(&self) -> u64 {
        self.run
    }

    /// Moves to the beginning of another tick, which is unused.
    pub fn enter_tick(&mut self) {
        let share = self.path.share();
        self.run_end = match self.rule {
            SequenceRule::Reset => 0,
            SequenceRule::Rolling => self.position() % share.ids_per_step,
        };
        self.run = 0;
        self.remaining = if self.wraps() { share.size() } else { share.size() - self.run_end };
    }

    /// Begins the next run, this many microseconds into the tick.
    ///
    /// # Errors
    /// How many microseconds into the tick to try again: the tick's length if the share is used up, and less if the walk keeps pace
    /// and is ahead of the clock.
    pub fn begin_run(&mut self, into_tick: u64, keeps_pace: bool) -> Result<(), u64> {
        let share = self.path.share();
        let (mut position, mut remaining) = (self.position(), self.remaining());
        if remaining == 0 {
            return Err(self.tick_length);
        }
        if position == share.size() {
            position = 0;
        }
        let mut step = position / share.ids_per_step;
        let present_step = scale(into_tick, share.steps, self.tick_length);
        if present_step > step {
            let place = match self.rule {
                SequenceRule::Reset => 0,
                SequenceRule::Rolling => position % share.ids_per_step,
            };
            step = present_step;
            position = step * share.ids_per_step + place;
            remaining = share.size() - position;
        }
        if keeps_pace && self.tick_length / share.steps <= LONGEST_STEP {
            let ahead = scale(AHEAD, share.steps, self.tick_length).max(1);
            if step > present_step + ahead {
                // After this wait, several steps are open, so that the session does not wait for each one.
                return Err(scale_up(step - ahead / 4, self.tick_length, share.steps));
            }
        }
        self.step_end = scale_up(step + 1, self.tick_length, share.steps);
        let Run { first, stride, length } = self.path.run_at(position);
        let length = length.min(remaining);
        (self.next, self.stride, self.run) = (first, stride, length);
        self.run_end = position + length;
        self.remaining = remaining - length;
        Ok(())
    }

    /// Uses this rule from the next tick on.
    pub const fn follow(&mut self, rule: SequenceRule) {
        self.rule = rule;
    }

    /// Whether the share begins again after its end, within a tick. A walk through a tick with steps never goes back.
    fn wraps(&self) -> bool {
        matches!(self.rule, SequenceRule::Rolling) && self.path.share().steps == 1
    }
}

/// Returns `number × factor / divisor`, rounded down.
fn scale(number: u64, factor: u64, divisor: u64) -> u64 {
    // In ticks of several hours, the product needs more than 64 bits. A 128-bit division takes many times as long.
    match number.checked_mul(factor) {
        Some(product) => product / divisor,
        None => (u128::from(number) * u128::from(factor) / u128::from(divisor)) as u64,
    }
}

/// Returns `number × factor / divisor`, rounded up.
fn scale_up(number: u64, factor: u64, divisor: u64) -> u64 {
    match number.checked_mul(factor) {
        Some(product) => product.div_ceil(divisor),
        None => (u128::from(number) * u128::from(factor)).div_ceil(u128::from(divisor)) as u64,
    }
}
