//! The partitions of sno as sources of IDs.

use std::borrow::Cow;

use super::{AUTOMATIC, NAME, SEQUENCES, Sno, TICK, TICKS};
use crate::generator::path::Path;
use crate::generator::source::IdSource;
use crate::layout::bits::{Bits, Scattered};
use crate::layout::ticks::Ticks;
use crate::{Error, Lanes, Numbers, Part, key};

/// The last 32 bits of a sno.
const PARTITION: Bits = Bits { shift: 16, width: 16 };
const SEQUENCE: Bits = Bits { shift: 0, width: 16 };

/// How many of the automatic partitions a server uses at most.
const MOST_PARTITIONS: u64 = 1 << 12;

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

    fn goes_back(&self) -> bool {
        true
    }

    /// All partitions of callers share cursors, because there are too many to have some each. So two partitions do not have the same
    /// sequence number in a tick, which they need not have.
    fn cursors(&self) -> u64 {
        key::of_sno(self.partition.map(|_| 0))
    }

    /// In the automatic partitions, nodes and parts divide the partitions; in callers' partitions, they divide the sequence.
    fn lanes(&self, part: Part) -> Result<Lanes, Error> {
        let (node, all) = (part.node(), Numbers { first: 0, count: SEQUENCES });
        let Some(partition) = self.partition else {
            let (workers, nodes) = (AUTOMATIC, node.count());
            let too_many_nodes = || Error::TooManyNodes { layout: NAME, workers, nodes };
            let partitions = node.part_of(AUTOMATIC).ok_or_else(too_many_nodes)?;
            let (partitions, sequences) = part.of(partitions, all, &NAME)?;
            // More would not make a session faster, and a lane's cursor would not fit into 64 bits.
            let (first, count) = (AUTOMATIC + partitions.first, partitions.count.min(MOST_PARTITIONS));
            return Ok(Lanes::shared(Numbers { first, count }, sequences, TICK, true));
        };
        let (number, max) = (partition.into(), AUTOMATIC as i64 - 1);
        let first = u64::try_from(partition).ok().filter(|&partition| partition < AUTOMATIC);
        let first = first.ok_or(Error::SnoPart { part: "partition", number, max, made: false })?;
        let sequences = node.part_of(SEQUENCES).unwrap_or(Numbers { first: 0, count: 0 });
        let (partitions, sequences) = part.of(Numbers { first, count: 1 }, sequences, &NAME)?;
        Ok(Lanes::shared(partitions, sequences, TICK, true))
    }

    fn ticks(&self) -> Ticks {
        TICKS
    }

    fn path(&self, lanes: &Lanes) -> Path {
        Path::new(Scattered::one(PARTITION), lanes.workers, SEQUENCE, lanes.sequences)
    }

    /// The lowest bit is the tick-tock bit.
    fn time_bits(&self, tick: u64, steps_back: u64) -> u64 {
        tick << 1 | steps_back & 1
    }

    #[inline]
    fn id(&self, time_bits: u64, bits: u64, metabyte: u8) -> Sno {
        Sno::of(time_bits, metabyte, bits as u32)
    }
}
