//! The order in which a node's IDs of a tick are made.

use crate::Numbers;
use crate::layout::bits::{Bits, Scattered};

/// One of the two numbers that tell the IDs of a tick apart, worker or sequence, with the node's part of its range.
#[derive(Debug, Clone, Copy)]
struct Digit {
    bits: Scattered,
    numbers: Numbers,
}

/// Maps the number of an ID, among all that the node can make in a tick, to worker and sequence in the order of the IDs: the less
/// significant of the two varies faster.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    fast: Digit,
    slow: Digit,
}

/// Consecutive numbers whose IDs lie `stride` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// The worker and sequence bits of the first one.
    pub first: u64,
    pub stride: u64,
    /// How many there are, at least 1.
    pub length: u64,
}

impl Path {
    pub(crate) fn new(worker: Scattered, workers: Numbers, sequence: Bits, sequences: Numbers) -> Self {
        let worker = Digit { bits: worker, numbers: workers };
        let sequence = Digit { bits: Scattered::one(sequence), numbers: sequences };
        let worker_is_finer = worker.bits.finest().shift < sequence.bits.finest().shift;
        // If one of the two has a single value, the other one varies.
        let worker_is_fast = if worker.numbers.count == 1 || sequence.numbers.count == 1 {
            sequence.numbers.count == 1
        } else {
            worker_is_finer
        };
        let (fast, slow) = if worker_is_fast { (worker, sequence) } else { (sequence, worker) };
        Self { fast, slow }
    }

    /// Returns the run that begins at a number, of at most `most` numbers.
    pub(crate) fn run_at(&self, number: u64, most: u64) -> Run {
        let (turns, within) = (number / self.fast.numbers.count, number % self.fast.numbers.count);
        let fast = self.fast.numbers.first + within;
        let finest = self.fast.bits.finest();
        // Where the least significant run of bits overflows, the stride to the next ID changes.
        let to_carry = finest.max() - (fast & finest.max()) + 1;
        Run {
            first: self.fast.bits.put(fast) | self.slow.bits.put(self.slow.numbers.first + turns),
            stride: 1 << finest.shift,
            length: to_carry.min(self.fast.numbers.count - within).min(most),
        }
    }
}
