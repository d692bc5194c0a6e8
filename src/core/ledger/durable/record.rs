//! The content of a file or a page.

use crate::Turns;
use crate::instant::MIN_INSTANT;

/// How many published watermarks a page keeps.
pub const MAX_PUBLISHED: usize = 12;
/// Space for later versions, in bytes.
pub const SPARE_BYTES: usize = 248;

/// The instant from which `pg_upgrade`'s number counts: 2020-01-01T00:00:00Z.
const SINCE: i64 = 1_577_836_800_000_000;
/// The unit of that number: 4 seconds.
const UNIT: i64 = 4_000_000;
/// How many bits it has for each half: until 2292.
const BITS: u32 = 31;

/// Which time is reserved.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// How often the clock was accepted. The last bit is the generation in force.
    pub acceptances: u64,
    /// For each generation, the instant before which all time may have been used; [`MIN_INSTANT`] if none was.
    pub until: [i64; 2],
}

impl Reserved {
    /// No time is reserved.
    pub const NONE: Self = Self { acceptances: 0, until: [MIN_INSTANT; 2] };

    /// The generation in force, 0 or 1.
    pub const fn generation(&self) -> usize {
        (self.acceptances & 1) as usize
    }

    /// The end of the time that is reserved in the generation in force.
    pub const fn end(&self) -> i64 {
        self.until[self.generation()]
    }

    /// Returns the greater of each number.
    #[must_use]
    pub fn merged_with(&self, other: &Self) -> Self {
        Self {
            acceptances: self.acceptances.max(other.acceptances),
            until: [self.until[0].max(other.until[0]), self.until[1].max(other.until[1])],
        }
    }

    /// Returns whether uniting it with the other would not change it.
    pub fn contains(&self, other: &Self) -> bool {
        self.merged_with(other) == *self
    }

    /// Returns it as a number from 1 on, which `pg_upgrade` keeps as the last value of a sequence: `until` of both halves, rounded up
    /// to 4 seconds, and the generation.
    pub fn number(&self) -> i64 {
        let units = self.until.map(|until| {
            let since = until.max(SINCE).saturating_sub(SINCE);
            (since / UNIT + i64::from(since % UNIT > 0)).clamp(1, (1 << BITS) - 1)
        });
        let number = units[0] << (BITS + 1) | units[1] << 1 | self.generation() as i64;
        debug_assert!(number > 0, "a sequence counts from 1 on");
        number
    }

    /// Returns what a number says.
    pub fn from_number(number: i64) -> Self {
        let until = |units: i64| SINCE + (units & ((1 << BITS) - 1)) * UNIT;
        Self { acceptances: (number & 1) as u64, until: [until(number >> (BITS + 1)), until(number >> 1)] }
    }
}

/// A watermark that the primary has published for snapshots of standbys. Only pages have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// The watermark.
    pub watermark: i64,
    /// A transaction ID that was not yet assigned when the watermark's snapshot was taken.
    pub next: u64,
}

/// The content of a file or a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Which time is reserved.
    pub reserved: Reserved,
    /// A random number of the start that wrote it; 0 if there was none, such as after `pg_upgrade`.
    pub writer: u64,
    /// The timeline of the writer, and the one before it, with their turns.
    pub turns: Turns,
    /// Watermarks for standbys, the latest last.
    pub published: Vec<Published>,
    /// The space for later versions, copied unchanged.
    pub room: [u8; SPARE_BYTES],
}

impl Default for Record {
    fn default() -> Self {
        Self { reserved: Reserved::NONE, writer: 0, turns: Turns::NONE, published: Vec::new(), room: [0; SPARE_BYTES] }
    }
}

impl Record {
    /// Unites it with more reserved time. Watermarks from before an acceptance are removed.
    pub fn merge_reserved(&mut self, reserved: &Reserved) {
        if reserved.acceptances > self.reserved.acceptances {
            self.published.clear();
        }
        self.reserved = self.reserved.merged_with(reserved);
    }
}
