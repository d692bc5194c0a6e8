//! Where the bits of each role lie in an ID: it follows from the fields. Every division is checked here.

use super::bits::{Bits, MAX_RUNS, Scattered};
use super::field::{Field, Reversal, Role};
use crate::error::Fault;

/// 4714-11-24 BC, Julian day 0: the first instant of a timestamptz.
const FIRST_INSTANT: i64 = -210_866_803_200_000_000;

/// Where each role's bits lie. It follows from the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Geometry {
    pub width: u32,
    pub timestamp: Bits,
    /// The last tick that the timestamp can hold and that ends at an instant.
    pub last_tick: u64,
    pub reversed: Reversal,
    pub flag: Bits,
    pub tag: Bits,
    pub worker: Scattered,
    pub sequence: Bits,
    pub random_mask: u64,
    /// The bits that are the same in every ID, including those above the layout's width.
    pub fixed_mask: u64,
    /// The value of the fixed bits.
    pub fixed: u64,
    /// The order of the (unsigned) IDs is the order of their ticks.
    pub time_ordered: bool,
}

impl Geometry {
    pub const fn new(epoch: i64, tick: i64, fields: &[Field]) -> Result<Self, Fault> {
        if tick <= 0 {
            return Err(Fault::Tick);
        }
        if epoch < FIRST_INSTANT {
            return Err(Fault::EarlyEpoch);
        }
        let width = match width_of(fields) {
            Ok(width) => width,
            Err(fault) => return Err(fault),
        };
        let above = if width == 64 { 0 } else { u64::MAX << width };
        let mut geometry = Self {
            width,
            timestamp: Bits::NONE,
            last_tick: 0,
            reversed: Reversal::Never,
            flag: Bits::NONE,
            tag: Bits::NONE,
            worker: worker_bits(fields),
            sequence: Bits::NONE,
            random_mask: 0,
            fixed_mask: above,
            fixed: 0,
            time_ordered: true,
        };
        let (mut shift, mut i) = (width, 0);
        while i < fields.len() {
            let field_width = fields[i].bits as u32;
            shift -= field_width;
            let bits = Bits { shift, width: field_width };
            match fields[i].role {
                Role::Timestamp { reversed } => {
                    geometry.timestamp = bits;
                    geometry.reversed = reversed;
                    geometry.time_ordered &= matches!(reversed, Reversal::Never);
                }
                Role::Sequence => geometry.sequence = bits,
                Role::Tag => geometry.tag = bits,
                Role::Flag => geometry.flag = bits,
                Role::Random => geometry.random_mask |= bits.mask(),
                Role::Worker { .. } => {}
                Role::Reserved { value } => {
                    if value > bits.max() {
                        return Err(Fault::ReservedValue(i + 1));
                    }
                    geometry.fixed_mask |= bits.mask();
                    geometry.fixed |= bits.put(value);
                }
            }
            let varies = !matches!(fields[i].role, Role::Timestamp { .. } | Role::Reserved { .. });
            if varies && geometry.timestamp.width == 0 {
                geometry.time_ordered = false;
            }
            i += 1;
        }
        // An instant is 64 bits of microseconds, which limits a wide timestamp to the year 294246.
        let ticks = (i64::MAX as i128 - epoch as i128) / tick as i128;
        if ticks < 1 {
            return Err(Fault::LongTick);
        }
        let most = geometry.timestamp.max();
        geometry.last_tick = if ticks - 1 < most as i128 { ticks as u64 - 1 } else { most };
        Ok(geometry)
    }

    /// Returns the timestamp bits of a tick and the reserved bits, in an ID without a flag.
    #[inline]
    pub const fn time_bits(&self, tick: u64) -> u64 {
        self.timestamp.put(self.turn(tick, 0)) | self.fixed
    }

    /// Returns the place of the ticks in an ID. Two layouts with the same place have a tick in the same bits. The width counts only
    /// if ticks are reversed, because otherwise a wider timestamp only lasts longer.
    pub fn time_place(&self) -> (u32, Reversal, u32) {
        let Bits { shift, width } = self.timestamp;
        (shift, self.reversed, if matches!(self.reversed, Reversal::Never) { 0 } else { width })
    }

    /// Converts a tick to what its field stores in this ID, and back.
    #[inline]
    pub const fn turn(&self, tick: u64, id: u64) -> u64 {
        match self.reversed {
            Reversal::Never => return tick,
            Reversal::UnlessFlagged if self.flag.get(id) != 0 => return tick,
            Reversal::Always | Reversal::UnlessFlagged => {}
        }
        tick.reverse_bits() >> (64 - self.timestamp.width)
    }
}

/// Returns the width of an ID with these fields, or a fault if a layout may not have so many fields of one role.
const fn width_of(fields: &[Field]) -> Result<u32, Fault> {
    let mut width = 0;
    let (mut timestamps, mut sequences, mut workers, mut tags) = (0, 0, 0, 0);
    let mut i = 0;
    while i < fields.len() {
        if fields[i].bits == 0 {
            return Err(Fault::EmptyField(i + 1));
        }
        width += fields[i].bits as u32;
        match fields[i].role {
            Role::Timestamp { .. } => timestamps += 1,
            Role::Sequence => sequences += 1,
            Role::Worker { .. } => workers += 1,
            Role::Tag => tags += 1,
            Role::Random | Role::Flag | Role::Reserved { .. } => {}
        }
        i += 1;
    }
    if width > 64 {
        return Err(Fault::TooWide(width));
    }
    if timestamps != 1 {
        return Err(Fault::Fields { expected: "exactly one timestamp field", found: timestamps });
    }
    if sequences > 1 {
        return Err(Fault::Fields { expected: "at most one sequence field", found: sequences });
    }
    if tags > 1 {
        return Err(Fault::Fields { expected: "at most one tag field", found: tags });
    }
    const { assert!(MAX_RUNS == 4) };
    if workers > MAX_RUNS {
        return Err(Fault::Fields { expected: "at most 4 worker fields", found: workers });
    }
    Ok(width)
}

/// Collects the worker number's bits from its finest field up: the highest rank first, and within a rank the least
/// significant field first.
const fn worker_bits(fields: &[Field]) -> Scattered {
    let mut worker = Scattered::NONE;
    let mut rank = u8::MAX as i32;
    while rank >= 0 {
        let (mut shift, mut i) = (0, fields.len());
        while i > 0 {
            i -= 1;
            let bits = Bits { shift, width: fields[i].bits as u32 };
            if let Role::Worker { rank: r } = fields[i].role
                && r as i32 == rank
            {
                worker = worker.extended_by(bits);
            }
            shift += bits.width;
        }
        rank -= 1;
    }
    worker
}
