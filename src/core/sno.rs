//! sno: IDs of 80 bits, after muyo/sno 1.2.1.
//!
//! From the most significant bit down: 39 bits of 4 ms units since 2010-01-01T00:00:00Z, the tick-tock bit, the metabyte
//! (8 bits, the caller's), the partition (16) and the sequence (16). The order of the bytes is the order of time.

mod generator;
mod text;

use std::borrow::Cow;

pub use generator::{SnoGenerator, SnoStep};

use crate::{Bound, Error};

/// Instant of unit 0, in microseconds since 1970-01-01T00:00:00Z.
const EPOCH: i64 = 1_262_304_000_000_000;
/// Length of a unit in microseconds.
const UNIT: i64 = 4_000;
const LAST_UNIT: u64 = (1 << 39) - 1;

/// An ID. Its order is that of its bytes, and so of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sno([u8; 10]);

/// The numbers inside a sno.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnoParts {
    /// Units of 4 ms since 2010-01-01T00:00:00Z, below 2^39.
    pub unit: u64,
    /// Toggled by the generator when the clock steps back.
    pub tick_tock: bool,
    /// The caller's byte.
    pub metabyte: u8,
    /// Which generator.
    pub partition: u16,
    /// Which ID of the unit.
    pub sequence: u16,
}

impl SnoParts {
    /// The sno with these parts; a unit of more than 39 bits is cut.
    pub const fn pack(self) -> Sno {
        let time = (self.unit & LAST_UNIT) << 1 | self.tick_tock as u64;
        let [_, _, _, a, b, c, d, e] = time.to_be_bytes();
        let ([f, g], [h, i]) = (self.partition.to_be_bytes(), self.sequence.to_be_bytes());
        Sno([a, b, c, d, e, self.metabyte, f, g, h, i])
    }
}

impl Sno {
    /// Every bit 0: a value like others.
    pub const ZERO: Self = Self([0; 10]);

    /// The sno with these bytes, the most significant first.
    pub const fn from_bytes(bytes: [u8; 10]) -> Self {
        Self(bytes)
    }

    /// Its bytes, the most significant first.
    pub const fn bytes(&self) -> &[u8; 10] {
        &self.0
    }

    /// Its parts.
    pub const fn parts(&self) -> SnoParts {
        let [a, b, c, d, e, metabyte, f, g, h, i] = self.0;
        let time = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]);
        SnoParts {
            unit: time >> 1,
            tick_tock: time & 1 == 1,
            metabyte,
            partition: u16::from_be_bytes([f, g]),
            sequence: u16::from_be_bytes([h, i]),
        }
    }

    /// When its unit began, in microseconds since 1970-01-01T00:00:00Z.
    pub const fn instant(&self) -> i64 {
        start_of(self.parts().unit)
    }

    /// The same sno with another metabyte.
    pub const fn with_metabyte(mut self, metabyte: u8) -> Self {
        self.0[5] = metabyte;
        self
    }

    /// The unit that holds an instant, or [`Error::InstantOutOfRange`].
    pub fn unit_at(at: i64) -> Result<u64, Error> {
        let end = start_of(LAST_UNIT) + UNIT;
        if !(EPOCH..end).contains(&at) {
            return Err(Error::InstantOutOfRange { layout: NAME, at, first: EPOCH, end });
        }
        Ok(((at - EPOCH) / UNIT) as u64)
    }

    /// The smallest sno of the unit that holds an instant.
    pub fn min_at(at: i64) -> Result<Self, Error> {
        Ok(smallest_of(Self::unit_at(at)?))
    }

    /// The largest sno of the unit that holds an instant.
    pub fn max_at(at: i64) -> Result<Self, Error> {
        Ok(largest_of(Self::unit_at(at)?))
    }

    /// The smallest and the largest sno whose units overlap a span; see [`crate::Layout::ids_during`].
    pub fn during(from: Bound, to: Bound, to_included: bool) -> Option<(Self, Self)> {
        let first = match from {
            Some(at) if at >= EPOCH => Self::unit_at(at).ok()?,
            _ => 0,
        };
        let last = match to {
            None => LAST_UNIT,
            Some(at) => {
                let at = if to_included { at } else { at.checked_sub(1)? };
                if at < EPOCH {
                    return None;
                }
                Self::unit_at(at).unwrap_or(LAST_UNIT)
            }
        };
        (first <= last).then(|| (smallest_of(first), largest_of(last)))
    }
}

/// What errors call the layout of a sno.
const NAME: Cow<'static, str> = Cow::Borrowed("sno");

const fn start_of(unit: u64) -> i64 {
    EPOCH + unit as i64 * UNIT
}

const fn smallest_of(unit: u64) -> Sno {
    SnoParts { unit, tick_tock: false, metabyte: 0, partition: 0, sequence: 0 }.pack()
}

const fn largest_of(unit: u64) -> Sno {
    SnoParts { unit, tick_tock: true, metabyte: u8::MAX, partition: u16::MAX, sequence: u16::MAX }.pack()
}
