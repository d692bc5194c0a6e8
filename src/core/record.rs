//! What a server keeps on disk: a file of two records, of which the newer one that is whole counts.
//!
//! A record is a line of text: `flake`, the version of the form, a checksum (XXH3, of the rest), and a JSON object; padded
//! with spaces. It is never written over the last one that was forced to disk, so that a write which fails half way loses
//! nothing.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::timeline::{Stretch, Timeline};

/// Bytes of a record in its file; the most it can need is half of it.
pub const SIZE: usize = 4096;
const MAGIC: &str = "flake 1";

/// The use of time as it is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Counts up.
    pub number: u64,
    stretches: Vec<Stretch>,
    open: usize,
    /// Said by the last session that ended; none while there are sessions.
    pub left: Option<Left>,
}

/// A note that was not forced to disk: good for as long as the operating system that took it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Left {
    /// Which run of the operating system.
    pub boot: String,
    /// Every tick that starts at or after this instant is unused.
    pub free_from: i64,
}

impl Record {
    /// The record of a timeline.
    pub fn new(number: u64, timeline: &Timeline, left: Option<Left>) -> Self {
        Self { number, stretches: timeline.stretches().to_vec(), open: timeline.open_number(), left }
    }

    /// Its timeline; none when it is no possible one.
    pub fn timeline(&self) -> Option<Timeline> {
        Timeline::of(&self.stretches, self.open)
    }

    /// Its bytes in the file.
    pub fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_string(self).unwrap_or_default();
        let line = format!("{MAGIC} {:016x} {json}", xxh3_64(json.as_bytes()));
        format!("{line:<width$}\n", width = SIZE - 1).into_bytes()
    }

    /// The newest whole record of a file, and which of the two it is; none when there is none.
    pub fn newest(file: &[u8]) -> Option<(usize, Self)> {
        let records = file.chunks(SIZE).take(2).enumerate();
        records.filter_map(|(place, bytes)| Some((place, Self::decode(bytes)?))).max_by_key(|(_, record)| record.number)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(bytes).ok()?.trim_end();
        let (checksum, json) = line.strip_prefix(MAGIC)?.trim_start().split_once(' ')?;
        let whole = u64::from_str_radix(checksum, 16).ok()? == xxh3_64(json.as_bytes());
        let record: Self = whole.then(|| serde_json::from_str(json).ok())??;
        record.timeline().map(|_| record)
    }
}
