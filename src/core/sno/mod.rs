//! sno: IDs of 80 bits, after muyo/sno 1.2.1.
//!
//! From the most significant bit down: the time in ticks of 4 ms since 2010-01-01T00:00:00Z (39 bits), the tick-tock bit,
//! the caller's metabyte (8 bits), the partition (16) and the sequence (16). Snos sort by time, byte by byte.

mod source;
mod text;

use std::borrow::Cow;
use std::ops::Bound;

pub use source::SnoSource;

use crate::id::explain::{Run, draw, to_rfc3339};
use crate::layout::ticks::Ticks;
use crate::{Error, Node, TextFault};

/// The instant of tick 0, in microseconds since 1970-01-01T00:00:00Z.
const EPOCH: i64 = 1_262_304_000_000_000;
/// How many microseconds a tick lasts.
pub const TICK: i64 = 4_000;
const LAST_TICK: u64 = (1 << 39) - 1;
const TICKS: Ticks = Ticks { epoch: EPOCH, length: TICK, last: LAST_TICK };

/// Partitions from this number up are assigned automatically; those below are the caller's.
const AUTOMATIC: u64 = 1 << 15;
const SEQUENCES: u64 = 1 << 16;

/// An ID of 80 bits. Snos sort by their bytes, and so by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sno([u8; 10]);

/// The numbers in a sno.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnoParts {
    /// Ticks of 4 ms since 2010-01-01T00:00:00Z, below 2^39.
    pub tick: u64,
    /// Toggled by the generator when the clock steps back.
    pub tick_tock: bool,
    /// The caller's byte.
    pub metabyte: u8,
    /// The generator's number.
    pub partition: u16,
    /// The number of the ID within its tick.
    pub sequence: u16,
}

impl SnoParts {
    /// Returns the parts of a sno at an instant, or [`Error::SnoPart`] if a number does not fit.
    pub fn at(at: i64, metabyte: i64, partition: i64, sequence: i64, tick_tock: bool) -> Result<Self, Error> {
        Ok(Self {
            tick: Sno::tick_at(at)?,
            tick_tock,
            metabyte: fit("metabyte", metabyte, true)?,
            partition: fit("partition", partition, true)?,
            sequence: fit("sequence", sequence, true)?,
        })
    }

    /// Returns the sno with these parts. Bits of the tick above 39 are dropped.
    pub const fn pack(self) -> Sno {
        let time = self.tick << 1 | self.tick_tock as u64;
        Sno::of(time, self.metabyte, (self.partition as u32) << 16 | self.sequence as u32)
    }
}

impl Sno {
    /// The sno whose bits are all 0, which is a valid sno.
    pub const ZERO: Self = Self([0; 10]);

    /// Returns the sno with the lowest 40 bits of a time, a metabyte, and the partition and the sequence.
    #[inline]
    const fn of(time: u64, metabyte: u8, rest: u32) -> Self {
        let [_, _, _, a, b, c, d, e] = time.to_be_bytes();
        let [f, g, h, i] = rest.to_be_bytes();
        Self([a, b, c, d, e, metabyte, f, g, h, i])
    }

    /// Returns the sno with these bytes, the most significant first.
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
            tick: time >> 1,
            tick_tock: time & 1 == 1,
            metabyte,
            partition: u16::from_be_bytes([f, g]),
            sequence: u16::from_be_bytes([h, i]),
        }
    }

    /// Reads a text of any length; returns [`Error::SnoText`] if it is not a sno.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        let fault = match <&[u8; 16]>::try_from(text) {
            Ok(digits) => match Self::decode(digits) {
                Ok(sno) => return Ok(sno),
                Err(index) => TextFault::Character { character: char::from(text[index]), position: index + 1 },
            },
            Err(_) => TextFault::Length { found: text.len(), expected: 16 },
        };
        let text = text.escape_ascii().take(64).map(char::from).collect();
        Err(Error::SnoText { text, fault })
    }

    /// Returns the sno with these bytes, or [`Error::SnoBytes`] if they are not ten.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, Error> {
        bytes.try_into().map(Self).map_err(|_| Error::SnoBytes { length: bytes.len(), received: false })
    }

    /// When its tick began, in microseconds since 1970-01-01T00:00:00Z.
    pub const fn instant(&self) -> i64 {
        TICKS.start_of(self.parts().tick)
    }

    /// The first instant after the tick in which it was made.
    pub const fn end(&self) -> i64 {
        self.instant() + TICK
    }

    /// The same sno with another metabyte.
    pub const fn with_metabyte(mut self, metabyte: u8) -> Self {
        self.0[5] = metabyte;
        self
    }

    /// Returns the tick that holds an instant, or [`Error::InstantOutOfRange`].
    pub fn tick_at(at: i64) -> Result<u64, Error> {
        TICKS.tick_at(at, &NAME)
    }

    /// Returns which node has the sno in its share, if one has it; `node` is any node of the deployment.
    pub fn node_of(&self, node: Node) -> Option<u32> {
        let SnoParts { partition, sequence, .. } = self.parts();
        match u64::from(partition).checked_sub(AUTOMATIC) {
            Some(automatic) => node.holder_of(automatic, AUTOMATIC),
            None => node.holder_of(sequence.into(), SEQUENCES),
        }
    }

    /// Returns the 80 bits as runs, from the most significant bit down.
    pub fn runs(&self) -> [Run; 5] {
        let parts = self.parts();
        [
            ("unit", parts.tick, 39),
            ("tick_tock", parts.tick_tock.into(), 1),
            ("metabyte", parts.metabyte.into(), 8),
            ("partition", parts.partition.into(), 16),
            ("sequence", parts.sequence.into(), 16),
        ]
        .map(|(name, bits, width)| Run { name: name.into(), number: Some(bits), bits, width })
    }

    /// Shows the sno as text, bytes and an instant in UTC, its bits, and below them each part's width, name and number.
    pub fn explain(&self) -> String {
        let text = String::from_utf8_lossy(&self.encode()).into_owned();
        let number = self.0.iter().fold(0, |number, &byte| number << 8 | u128::from(byte));
        draw(&format!("sno {text}  0x{number:020x}  {}", to_rfc3339(self.instant())), &self.runs())
    }

    /// Returns the smallest sno of the tick that holds an instant.
    pub fn min_at(at: i64) -> Result<Self, Error> {
        Ok(smallest_of(Self::tick_at(at)?))
    }

    /// Returns the largest sno of the tick that holds an instant.
    pub fn max_at(at: i64) -> Result<Self, Error> {
        Ok(largest_of(Self::tick_at(at)?))
    }

    /// The smallest sno whose tick begins at an instant or after it.
    pub fn since(at: i64) -> Option<Self> {
        TICKS.since(at).map(smallest_of)
    }

    /// The smallest sno whose tick begins after an instant.
    pub fn after(at: i64) -> Option<Self> {
        TICKS.after(at).map(smallest_of)
    }

    /// The largest sno whose tick begins at an instant or before it.
    pub fn until(at: i64) -> Option<Self> {
        TICKS.until(at).map(largest_of)
    }

    /// The largest sno whose tick begins before an instant.
    pub fn before(at: i64) -> Option<Self> {
        TICKS.before(at).map(largest_of)
    }

    /// Returns the smallest and the largest sno whose ticks overlap a span; see [`crate::Layout::ids_during`].
    pub fn during(from: Bound<i64>, to: Bound<i64>) -> Option<(Self, Self)> {
        TICKS.during(from, to).map(|(first, last)| (smallest_of(first), largest_of(last)))
    }
}

/// The layout's name in error messages.
pub const NAME: Cow<'static, str> = Cow::Borrowed("sno");

/// Checks a metabyte to generate with.
pub fn metabyte(number: i64) -> Result<u8, Error> {
    fit("metabyte", number, false)
}

fn fit<T: TryFrom<i64>>(part: &'static str, number: i64, made: bool) -> Result<T, Error> {
    let max = (1 << (8 * size_of::<T>())) - 1;
    T::try_from(number).map_err(|_| Error::SnoPart { part, number, max, made })
}

const fn smallest_of(tick: u64) -> Sno {
    SnoParts { tick, tick_tock: false, metabyte: 0, partition: 0, sequence: 0 }.pack()
}

const fn largest_of(tick: u64) -> Sno {
    SnoParts { tick, tick_tock: true, metabyte: u8::MAX, partition: u16::MAX, sequence: u16::MAX }.pack()
}
