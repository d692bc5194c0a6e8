//! The partitions of sno as sources of IDs.

use std::borrow::Cow;

use super::{NAME, Sno, TICKS, automatic_share, partition_share};
use crate::generator::path::Path;
use crate::generator::source::IdSource;
use crate::layout::bits::{Bits, Scattered};
use crate::layout::ticks::Ticks;
use crate::{Error, Node, SequenceRule, Share, Slot, key};

/// The last 32 bits of a sno.
const PARTITION: Bits = Bits { shift: 16, width: 16 };
const SEQUENCE: Bits = Bits { shift: 0, width: 16 };

/// A partition that the caller gives, or the automatic ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnoSource {
    /// The caller's.
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
        match self.partition {
            Some(partition) => partition_share(partition.into(), node, slot),
            None => automatic_share(node, slot),
        }
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
