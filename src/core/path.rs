//! The order in which a generator walks through its share.

use crate::bits::{Bits, Scattered};
use crate::layout::Geometry;
use crate::{Numbers, Share};

/// One of the two numbers that distinguish the IDs of a tick, with the share's part of its range.
#[derive(Debug, Clone, Copy)]
struct Dial {
    bits: Scattered,
    numbers: Numbers,
}

/// Maps positions to worker and sequence in the order of the IDs: the less significant of the two varies faster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    fast: Dial,
    slow: Dial,
}

/// Consecutive positions whose IDs lie `step` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// The worker and sequence bits of the first position.
    pub first: u64,
    pub step: u64,
    /// How many positions, at least 1.
    pub length: u64,
}

impl Path {
    pub fn new(geometry: &Geometry, share: &Share) -> Self {
        let worker = Dial { bits: geometry.worker, numbers: share.workers };
        let sequence = Dial { bits: Scattered::one(geometry.sequence), numbers: share.sequences };
        let worker_is_finer = worker.bits.finest().shift < sequence.bits.finest().shift;
        // If one of the two has a single number, the other one is the fast one.
        let worker_is_fast = if worker.numbers.count == 1 || sequence.numbers.count == 1 {
            sequence.numbers.count == 1
        } else {
            worker_is_finer
        };
        if worker_is_fast { Self { fast: worker, slow: sequence } } else { Self { fast: sequence, slow: worker } }
    }

    /// Returns the run that begins at a position below the share's size.
    pub fn run_at(&self, position: u64) -> Run {
        let (turns, within) = (position / self.fast.numbers.count, position % self.fast.numbers.count);
        let number = self.fast.numbers.first + within;
        let Bits { shift, .. } = self.fast.bits.finest();
        // Where the least significant run of bits overflows, the step to the next ID is another one.
        let to_carry = self.fast.bits.finest().max() - (number & self.fast.bits.finest().max()) + 1;
        Run {
            first: self.fast.bits.put(number) | self.slow.bits.put(self.slow.numbers.first + turns),
            step: 1 << shift,
            length: to_carry.min(self.fast.numbers.count - within),
        }
    }
}
