//! The secrets of a key. Each is for the IDs from a first one on, so a new secret changes no public ID that exists.

use super::{Cipher, Secret, fingerprint};

/// How many secrets a key may have. A text that was not sealed is deciphered by each.
pub const MOST_RANGES: usize = 4;

/// The algorithm, which begins the text form of a range, so that a version that does not know it refuses the range.
const ALGORITHM: &str = "aes128-uuid8";

/// A range of IDs, as it can be shown: it lasts up to the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first ID.
    pub from: i64,
    /// The fingerprint of its secret.
    pub fingerprint: String,
}

impl Range {
    /// Returns the range of the IDs from this one on, which this secret seals.
    pub fn new(from: i64, secret: &Secret) -> Self {
        Self { from, fingerprint: fingerprint(secret) }
    }

    /// Returns the range that a text form says, or None if another version wrote it.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (algorithm, from, fingerprint) = (words.next()?, words.next()?, words.next()?);
        let range = Self { from: from.parse().ok()?, fingerprint: fingerprint.to_owned() };
        (algorithm == ALGORITHM && range.to_string() == text).then_some(range)
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{ALGORITHM} {} {}", self.from, self.fingerprint)
    }
}

/// The ciphers of a key, by the first IDs of their ranges, in order.
#[derive(Clone)]
pub struct Ranges(Vec<(i64, Cipher)>);

impl Ranges {
    /// Returns the ranges of a key, or None if they leave out an ID or are not in order.
    pub fn new(ranges: Vec<(i64, Cipher)>) -> Option<Self> {
        let is_whole = ranges.first().is_some_and(|&(from, _)| from == i64::MIN);
        (is_whole && ranges.len() <= MOST_RANGES && ranges.is_sorted_by(|one, other| one.0 < other.0))
            .then_some(Self(ranges))
    }

    /// Returns the UUID that stands for an ID.
    pub fn seal(&self, id: i64) -> u128 {
        self.cipher(self.range(id)).seal(id)
    }

    /// Returns the ID that a UUID stands for, or None if it was not sealed by the secret of that ID.
    pub fn open(&self, sealed: u128) -> Option<i64> {
        // The latest range is tried first, because most requests are for new IDs.
        (0..self.0.len()).rev().find_map(|range| {
            let id = self.cipher(range).open(sealed)?;
            (self.range(id) == range).then_some(id)
        })
    }

    fn range(&self, id: i64) -> usize {
        self.0.iter().rposition(|&(from, _)| from <= id).unwrap_or_default()
    }

    fn cipher(&self, range: usize) -> &Cipher {
        &self.0[range].1
    }
}
