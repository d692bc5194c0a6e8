//! Lots: what a lease can have of the part of a node's lessees.
//!
//! A lot is a worker. If the part has few workers, such as four of `si`, a lot is a piece of a worker's sequence numbers, so that more
//! applications find one.

use crate::part::power_of_two;
use crate::{Error, Layout, Numbers, Part};

/// Workers are not divided any further once there are so many lots.
const ENOUGH: u64 = 64;
/// How many IDs of a tick a piece of a worker has at least.
const LEAST: u64 = 16;

/// The lots of a lessees' part in a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lots {
    workers: Numbers,
    sequences: Numbers,
    /// How many lots a worker has.
    of_worker: u64,
}

impl Lots {
    /// Returns the lots of a part.
    ///
    /// # Errors
    /// The errors of [`Part::numbers`].
    pub fn new(layout: &Layout, part: Part) -> Result<Self, Error> {
        let (workers, sequences) = part.numbers(layout)?;
        let wanted = ENOUGH.div_ceil(workers.count).min(sequences.count / LEAST);
        Ok(Self { workers, sequences, of_worker: power_of_two(wanted.max(1)) })
    }

    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.workers.count * self.of_worker
    }

    /// Returns the worker of a lot, and its sequence numbers.
    pub const fn lot(&self, number: u64) -> (u64, Numbers) {
        let count = self.sequences.count / self.of_worker;
        let first = self.sequences.first + number % self.of_worker * count;
        (self.workers.first + number / self.of_worker, Numbers { first, count })
    }
}

/// How an application composes an ID: `(tick << shift) + low + (n << step)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Composition {
    /// The lowest bit of the timestamp.
    pub shift: u32,
    /// The lowest bit of the sequence.
    pub step: u32,
}

impl Layout {
    /// Returns how an application composes the IDs of this layout. Random bits and tags are 0.
    ///
    /// # Errors
    /// Why it cannot, as a sentence.
    pub fn composition(&self) -> Result<Composition, &'static str> {
        let geometry = &self.geometry;
        if geometry.worker.width() == 0 {
            return Err("Its IDs have no worker, so all of them are for the server's sessions.");
        }
        if !geometry.time_ordered {
            return Err("Its IDs are not in the order of time, so all of them are for the server's sessions.");
        }
        if !self.keeps_some_for_lessees() {
            return Err("A lease consists of whole ticks, and the ticks of this layout are longer than a second.");
        }
        let shift = geometry.timestamp.shift;
        if geometry.fixed >> shift > 0 {
            return Err("Its IDs have reserved bits above the timestamp that are not 0.");
        }
        Ok(Composition { shift, step: geometry.sequence.shift })
    }
}
