//! The partitions of sno as sources of IDs.

use std::borrow::Cow;

use super::{AUTOMATIC, NAME, SEQUENCES, Sno, TICKS, UNIT};
use crate::generator::path::Path;
use crate::generator::source::IdSource;
use crate::layout::bits::{Bits, Scattered};
use crate::layout::most_steps;
use crate::layout::ticks::Ticks;
use crate::turn::TURNS;
use crate::{Error, Lanes, Numbers, Part, SequenceRule, key};

/// The last 32 bits of a sno.
const PARTITION: Bits = Bits { shift: 16, width: 16 };
const SEQUENCE: Bits = Bits { shift: 0, width: 16 };

/// A partition that the caller gives, or the automatic ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnoSource {
    /// The caller's, 0 to 32767.
    pub partition: Option<i32>,
}

impl IdSource for SnoSource {
    type Id = Sno;
    /// The metabyte.
    type Argument = u8;

    fn name(&self) -> Cow<'static, str> {
        NAME
    }

    fn key(&self) -> u64 {
        key::of_sno(self.partition)
    }

    fn is_built_in(&self) -> bool {
        true
    }

    fn generates(&self) -> bool {
        true
    }

    /// In the automatic partitions, which have the more IDs.
    fn goes_back(&self) -> bool {
        self.partition.is_none()
    }

    /// All partitions of callers share words, because there are too many to have some each. So two partitions do not have the same
    /// sequence number in a unit of time, which they need not have.
    fn words(&self) -> u64 {
        key::of_sno(Some(0))
    }

    /// In the automatic partitions, each slot has a lane of its own. In callers' partitions, sessions share lanes, and nodes and turns
    /// divide the sequence.
    fn lanes(&self, part: Part, slots: u32) -> Result<Lanes, Error> {
        let node = part.node();
        let Some(partition) = self.partition else {
            let (workers, nodes) = (AUTOMATIC, node.count());
            let too_many_nodes = || Error::TooManyNodes { layout: NAME, workers, nodes };
            let mut partitions = node.part_of(AUTOMATIC).ok_or_else(too_many_nodes)?;
            partitions.first += AUTOMATIC;
            let (partitions, sequences) = divided(part, partitions, Numbers { first: 0, count: SEQUENCES })?;
            return Lanes::of_slots(&NAME, partitions, sequences, slots, most_steps(UNIT));
        };
        let (number, max) = (partition.into(), AUTOMATIC as i64 - 1);
        let first = u64::try_from(partition).ok().filter(|&partition| partition < AUTOMATIC);
        let first = first.ok_or(Error::SnoPart { part: "partition", number, max, made: false })?;
        let sequences = node.part_of(SEQUENCES).unwrap_or(Numbers { first: 0, count: 0 });
        let (partitions, sequences) = divided(part, Numbers { first, count: 1 }, sequences)?;
        Ok(Lanes::shared(partitions, sequences, UNIT, true))
    }

    fn ticks(&self) -> Ticks {
        TICKS
    }

    fn rule(&self) -> SequenceRule {
        SequenceRule::Reset
    }

    fn path(&self, lanes: &Lanes) -> Path {
        Path::new(Scattered::one(PARTITION), lanes.workers, SEQUENCE, lanes.sequences)
    }

    /// The lowest bit is the tick-tock bit.
    fn time_bits(&self, unit: u64, drifts: u64) -> u64 {
        unit << 1 | drifts & 1
    }

    #[inline]
    fn id(&self, time_bits: u64, bits: u64, metabyte: u8) -> Sno {
        Sno::of(time_bits, metabyte, bits as u32)
    }
}

/// Returns a part of a node's partitions and sequence numbers.
fn divided(part: Part, partitions: Numbers, sequences: Numbers) -> Result<(Numbers, Numbers), Error> {
    part.of(partitions, sequences, TURNS).ok_or(Error::TooFewIds {
        layout: NAME,
        workers: partitions.count,
        sequences: sequences.count,
        parts: TURNS,
    })
}
