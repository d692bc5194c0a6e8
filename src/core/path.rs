//! The order in which a generator walks through its share.

use crate::bits::{Bits, Scattered};
use crate::layout::Geometry;
use crate::{Numbers, Share};

/// One of the two numbers that tell IDs of a tick apart, with the part of its range that a share has.
#[derive(Debug, Clone, Copy)]
struct Dial {
    place: Scattered,
    numbers: Numbers,
}

/// Positions of a share in the order of the IDs: the less significant of worker and sequence varies faster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    fast: Dial,
    slow: Dial,
}

/// Consecutive positions whose IDs lie `step` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Worker and sequence bits of the first.
    pub first: u64,
    pub step: u64,
    /// How many, at least 1.
    pub length: u64,
}

impl Path {
    pub fn new(geometry: &Geometry, share: &Share) -> Self {
        let worker = Dial { place: geometry.worker, numbers: share.workers };
        let sequence = Dial { place: Scattered::one(geometry.sequence), numbers: share.sequences };
        let worker_is_finer = worker.place.finest().shift < sequence.place.finest().shift;
        // A dial with one number does not turn: the other one is the fast one then.
        let worker_is_fast = if worker.numbers.count == 1 || sequence.numbers.count == 1 {
            sequence.numbers.count == 1
        } else {
            worker_is_finer
        };
        if worker_is_fast { Self { fast: worker, slow: sequence } } else { Self { fast: sequence, slow: worker } }
    }

    /// The run that begins at a position below the share's size.
    pub fn run_at(&self, position: u64) -> Run {
        let (turned, within) = (position / self.fast.numbers.count, position % self.fast.numbers.count);
        let number = self.fast.numbers.first + within;
        let Bits { shift, .. } = self.fast.place.finest();
        // Beyond the finest run of bits the number carries into another place of the ID.
        let to_carry = self.fast.place.finest().max() - (number & self.fast.place.finest().max()) + 1;
        Run {
            first: self.fast.place.put(number) | self.slow.place.put(self.slow.numbers.first + turned),
            step: 1 << shift,
            length: to_carry.min(self.fast.numbers.count - within),
        }
    }
}
