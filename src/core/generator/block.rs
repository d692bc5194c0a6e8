//! A block: IDs that a session has taken from a lane, and makes from its own memory.
//!
//! The IDs of a block are grouped into runs with equal strides, so that most IDs cost a comparison and an addition. A block belongs
//! to one step of a tick. When the clock has passed the step, the rest of the block is left out.

use super::path::{Path, Run};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Block {
    // The rest of the current run: the bits of its next ID, the stride to the following ID, and how many IDs are left.
    next: u64,
    stride: u64,
    run: u64,
    /// After this many microseconds of the tick, the block is behind the clock.
    step_end: u64,
    // The number of the ID after the run among the node's IDs of the tick, and how many IDs of the block remain after the run.
    number: u64,
    remaining: u64,
}

impl Block {
    /// Creates a block of `count` consecutive IDs.
    pub fn new(path: &Path, number: u64, count: u64, step_end: u64) -> Self {
        let mut block = Self { number, remaining: count, step_end, ..Self::default() };
        block.begin_run(path);
        block
    }

    /// Whether [`Self::take`] may be called, this many microseconds into the tick.
    #[inline]
    pub const fn is_ready(&self, into_tick: u64) -> bool {
        into_tick < self.step_end && self.run > 0
    }

    /// Returns how many microseconds remain until the block is behind the clock.
    #[inline]
    pub const fn remaining_in_step(&self, into_tick: u64) -> u64 {
        self.step_end.saturating_sub(into_tick)
    }

    /// Returns the worker and sequence bits of the next ID.
    #[inline]
    pub const fn take(&mut self) -> u64 {
        debug_assert!(self.run > 0, "an ID is made once");
        let bits = self.next;
        self.next = self.next.wrapping_add(self.stride);
        self.run -= 1;
        bits
    }

    /// How many IDs can be taken in a row.
    #[inline]
    pub const fn run(&self) -> u64 {
        self.run
    }

    /// Begins the next run, this many microseconds into the tick. Returns whether there is one.
    pub fn next_run(&mut self, path: &Path, into_tick: u64) -> bool {
        let goes_on = into_tick < self.step_end && self.remaining > 0;
        if goes_on {
            self.begin_run(path);
        }
        goes_on
    }

    fn begin_run(&mut self, path: &Path) {
        let Run { first, stride, length } = path.run_at(self.number, self.remaining);
        (self.next, self.stride, self.run) = (first, stride, length);
        debug_assert!(length > 0 && length <= self.remaining, "a run lies in its block");
        self.number += length;
        self.remaining -= length;
    }
}
