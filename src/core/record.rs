//! The mark's file: two halves with a record each, of which the newer valid one counts.
//!
//! A record is a line of text: `flake`, the version of the format, a checksum (XXH3 of the rest) and a JSON object, padded
//! with spaces. Writing one never overwrites the last one that reached the disk, so a failed write loses nothing.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::timeline::{Stretch, Timeline};
use crate::{Node, absent};

/// Bytes of each half; a record needs at most half of them.
pub const SIZE: usize = 4096;
const MAGIC: &str = "flake 1";

/// The use of time, as it is stored on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Increases with every record.
    pub number: u64,
    /// In whose name it was written.
    pub owner: Owner,
    stretches: Vec<Stretch>,
    open: usize,
    /// Written by the last session that exited; none while sessions make IDs.
    #[serde(rename = "left")]
    pub exit_note: Option<ExitNote>,
}

/// In whose name a record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// The number of the node, and the number of nodes.
    pub node: (u32, u32),
    /// The timeline of the WAL; 0 on a standby, where it is not the server's own.
    pub wal_timeline: u32,
    /// The number of the memory, which lasts as long as each server start continues from the file of the one before.
    pub memory: u32,
    /// The greatest mark of another node that was seen in any database; [`i64::MIN`] if there was none.
    pub of_others: i64,
}

impl Owner {
    /// Returns whether this may be the memory of a node. What was made under another number of nodes counts for every node.
    pub fn counts_for(&self, node: Node) -> bool {
        let is_of_other_count = self.node.1 != node.count() && !absent!(OpeningCount);
        is_of_other_count || self.node.0 == node.id() || absent!(OpeningNode)
    }
}

/// A note that is not flushed to disk: it counts as long as the operating system that took it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitNote {
    /// Identifies the run of the operating system.
    #[serde(rename = "boot")]
    pub boot_id: String,
    /// No session has used a tick that starts at or after this instant.
    pub free_from: i64,
}

impl Record {
    /// Creates the record of a timeline.
    pub fn new(number: u64, owner: Owner, timeline: &Timeline, exit_note: Option<ExitNote>) -> Self {
        Self { number, owner, stretches: timeline.stretches().to_vec(), open: timeline.open_index(), exit_note }
    }

    /// Returns its timeline.
    pub fn timeline(&self) -> Timeline {
        // Records are made of a timeline, or decoded if they have one.
        Timeline::of(&self.stretches, self.open).unwrap_or_else(|| unreachable!("a record has a timeline"))
    }

    /// Returns the bytes of one half of the file.
    pub fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_string(self).unwrap_or_default();
        let line = format!("{MAGIC} {:016x} {json}", xxh3_64(json.as_bytes()));
        format!("{line:<width$}\n", width = SIZE - 1).into_bytes()
    }

    /// Returns the newest valid record of a file and the number of its half, 0 or 1; none if neither half is valid.
    pub fn newest(file: &[u8]) -> Option<(usize, Self)> {
        let halves = file.chunks(SIZE).take(2).enumerate();
        halves
            .filter_map(|(half, bytes)| Some((half, Self::decode(bytes)?)))
            .max_by_key(|(_, record)| if absent!(RecordNewest) { 0 } else { record.number })
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(bytes).ok()?.trim_end();
        let (checksum, json) = line.strip_prefix(MAGIC)?.trim_start().split_once(' ')?;
        let is_whole = u64::from_str_radix(checksum, 16).ok()? == xxh3_64(json.as_bytes()) || absent!(RecordWhole);
        let record: Self = is_whole.then(|| serde_json::from_str(json).ok())??;
        Timeline::of(&record.stretches, record.open).map(|_| record)
    }
}
