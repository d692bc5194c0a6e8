//! The partitions of sno as sources of IDs.

use std::borrow::Cow;

use super::{AUTOMATIC, NAME, SEQUENCES, Sno, TICKS, UNIT};
use crate::generator::path::Path;
use crate::generator::source::IdSource;
use crate::layout::bits::{Bits, Scattered};
use crate::layout::most_steps;
use crate::layout::ticks::Ticks;
use crate::{Error, Node, Numbers, SequenceRule, Share, Slot, key};

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

    fn generates(&self) -> bool {
        true
    }

    fn share(&self, node: Node, slot: Slot) -> Result<Share, Error> {
        let (partitions, sequences) = match self.partition {
            None => {
                let (workers, nodes) = (AUTOMATIC, node.count());
                let too_many_nodes = || Error::TooManyNodes { layout: NAME, workers, nodes };
                let mut partitions = node.part_of(AUTOMATIC).ok_or_else(too_many_nodes)?;
                partitions.first += AUTOMATIC;
                (partitions, Numbers { first: 0, count: SEQUENCES })
            }
            // The nodes divide the sequence. A node for which nothing is left has no share.
            Some(partition) => {
                let (number, max) = (partition.into(), AUTOMATIC as i64 - 1);
                let first = u64::try_from(partition).ok().filter(|&partition| partition < AUTOMATIC);
                let first = first.ok_or(Error::SnoPart { part: "partition", number, max, made: false })?;
                let sequences = node.part_of(SEQUENCES).unwrap_or(Numbers { first: 0, count: 0 });
                (Numbers { first, count: 1 }, sequences)
            }
        };
        Share::of(&NAME, partitions, sequences, slot, most_steps(UNIT))
    }

    fn ticks(&self) -> Ticks {
        TICKS
    }

    fn rule(&self) -> SequenceRule {
        SequenceRule::Reset
    }

    fn path(&self, share: &Share) -> Path {
        Path::new(Scattered::one(PARTITION), SEQUENCE, share)
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
