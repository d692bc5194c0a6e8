//! The order in which a share's IDs are made.

use crate::layout::bits::{Bits, Scattered};
use crate::{Numbers, Share};

/// One of the two numbers that tell the IDs of a tick apart, worker or sequence, with the node's part of its range.
#[derive(Debug, Clone, Copy)]
struct Dial {
    bits: Scattered,
    numbers: Numbers,
}

/// Maps positions to worker and sequence in the order of the IDs: the less significant of the two varies faster.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    fast: Dial,
    slow: Dial,
    share: Share,
}

/// Consecutive positions whose IDs lie `stride` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// The worker and sequence bits of the first position.
    pub first: u64,
    pub stride: u64,
    /// How many positions, at least 1.
    pub length: u64,
}

impl Path {
    pub(crate) fn new(worker: Scattered, sequence: Bits, share: &Share) -> Self {
        let worker = Dial { bits: worker, numbers: share.workers };
        let sequence = Dial { bits: Scattered::one(sequence), numbers: share.sequences };
        let worker_is_finer = worker.bits.finest().shift < sequence.bits.finest().shift;
        // If one of the two has a single value, the other one varies.
        let worker_is_fast = if worker.numbers.count == 1 || sequence.numbers.count == 1 {
            sequence.numbers.count == 1
        } else {
            worker_is_finer
        };
        let (fast, slow) = if worker_is_fast { (worker, sequence) } else { (sequence, worker) };
        Self { fast, slow, share: *share }
    }

    pub const fn share(&self) -> &Share {
        &self.share
    }

    /// Returns the run that begins at a position below the share's size. It ends with the step.
    pub(crate) fn run_at(&self, position: u64) -> Run {
        let (number, following) = self.share.number_at(position);
        let (turns, within) = (number / self.fast.numbers.count, number % self.fast.numbers.count);
        let fast = self.fast.numbers.first + within;
        let finest = self.fast.bits.finest();
        // Where the least significant run of bits overflows, the stride to the next ID changes.
        let to_carry = finest.max() - (fast & finest.max()) + 1;
        Run {
            first: self.fast.bits.put(fast) | self.slow.bits.put(self.slow.numbers.first + turns),
            stride: 1 << finest.shift,
            length: to_carry.min(self.fast.numbers.count - within).min(following + 1),
        }
    }
}
