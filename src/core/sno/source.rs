//! The partitions of sno as sources of IDs.

use std::borrow::Cow;

use super::{AUTOMATIC, NAME, SEQUENCES, Sno, TICKS, UNIT};
use crate::generator::path::Path;
use crate::generator::source::IdSource;
use crate::layout::bits::{Bits, Scattered};
use crate::layout::most_steps;
use crate::layout::ticks::Ticks;
use crate::ledger::slot::Kept;
use crate::{Error, Lanes, Node, Numbers, SequenceRule, key};

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
    const GOES_BACK: bool = true;

    fn name(&self) -> Cow<'static, str> {
        NAME
    }

    fn key(&self) -> u64 {
        key::of_sno(self.partition)
    }

    fn kept(&self) -> Kept {
        // There are too many partitions of callers to keep the progress in each of them.
        if self.partition.is_none() { Kept::Progress } else { Kept::Instant }
    }

    fn generates(&self) -> bool {
        true
    }

    /// Each slot has a lane of its own.
    fn lanes(&self, node: Node, slots: u32) -> Result<Lanes, Error> {
        let (partitions, sequences) = match self.partition {
            None => {
                let (workers, nodes) = (AUTOMATIC, node.count());
                let too_many_nodes = || Error::TooManyNodes { layout: NAME, workers, nodes };
                let mut partitions = node.part_of(AUTOMATIC).ok_or_else(too_many_nodes)?;
                partitions.first += AUTOMATIC;
                (partitions, Numbers { first: 0, count: SEQUENCES })
            }
            // The nodes divide the sequence. Nothing may be left for a node.
            Some(partition) => {
                let (number, max) = (partition.into(), AUTOMATIC as i64 - 1);
                let first = u64::try_from(partition).ok().filter(|&partition| partition < AUTOMATIC);
                let first = first.ok_or(Error::SnoPart { part: "partition", number, max, made: false })?;
                let sequences = node.part_of(SEQUENCES).unwrap_or(Numbers { first: 0, count: 0 });
                (Numbers { first, count: 1 }, sequences)
            }
        };
        Lanes::of_slots(&NAME, partitions, sequences, slots, most_steps(UNIT))
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
