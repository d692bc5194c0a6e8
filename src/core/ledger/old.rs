//! The file and the page of version 0.9.0, which are read, and never written again. Its marks have no gaps.

use serde::Deserialize;
use xxhash_rust::xxh3::xxh3_64;

use super::block::{FilePart, i64_at, u32_at};
use super::marks::{Bound, MARGIN, Mark, Marks, Writer};
use super::used::Used;

/// Bytes of each half of the file.
const HALF: usize = 4096;
const FILE_MAGIC: &str = "flake 1";
/// Bytes of what its page holds.
pub const PAGE_SIZE: usize = 32 + MOST * 24;
const MOST: usize = 300;
const PAGE_MAGIC: u32 = 0x464c_4d31;

#[derive(Deserialize)]
struct Record {
    number: u64,
    owner: Owner,
    stretches: Vec<Stretch>,
}

#[derive(Deserialize)]
struct Owner {
    node: (u32, u32),
    wal_timeline: u32,
    memory: u32,
    of_others: i64,
}

#[derive(Deserialize)]
struct Stretch {
    until: i64,
}

/// Returns whether a file is one of 0.9.0.
pub fn is_file(bytes: &[u8]) -> bool {
    bytes.len() == 2 * HALF
}

/// Reads a file of 0.9.0; none if neither half is valid.
pub fn file(bytes: &[u8]) -> Option<(Marks, FilePart)> {
    let record = bytes.chunks(HALF).filter_map(record).max_by_key(|record| record.number)?;
    let Owner { node, wal_timeline, memory, of_others } = record.owner;
    let until = record.stretches.iter().map(|stretch| stretch.until).max()?;
    let folded = (of_others > i64::MIN).then(|| Used::before(of_others.saturating_sub(MARGIN)));
    let mut marks = Marks { folded, ..Marks::default() };
    marks.set(Mark { by: Writer { node, incarnation: memory, start: 0 }, used: Used::before(until) });
    Some((marks, FilePart { number: record.number, node, wal_timeline, waits: false, exit_note: None }))
}

fn record(half: &[u8]) -> Option<Record> {
    let line = std::str::from_utf8(half).ok()?.trim_end();
    let (checksum, json) = line.strip_prefix(FILE_MAGIC)?.trim_start().split_once(' ')?;
    let is_whole = u64::from_str_radix(checksum, 16).ok()? == xxh3_64(json.as_bytes());
    is_whole.then(|| serde_json::from_str(json).ok())?
}

/// Reads a page of 0.9.0; none if it is something else.
pub fn page(bytes: &[u8]) -> Option<Marks> {
    if bytes.len() < PAGE_SIZE || u32_at(bytes, 0) != PAGE_MAGIC {
        return None;
    }
    let count = u32_at(bytes, 4) as usize;
    let (unlisted, binding) = (i64_at(bytes, 8), i64_at(bytes, 16));
    let mut marks = Marks {
        folded: (unlisted > i64::MIN).then(|| Used::before(unlisted.saturating_sub(MARGIN))),
        bound: Bound { recalls: 0, instant: binding, incarnation: u32_at(bytes, 24) },
        ..Marks::default()
    };
    if count > MOST {
        return None;
    }
    for index in 0..count {
        let at = 32 + index * 24;
        let node = (u32_at(bytes, at), u32_at(bytes, at + 4));
        let by = Writer { node, incarnation: u32_at(bytes, at + 16), start: 0 };
        // There a mark has the margin in it.
        let used = Used::before(i64_at(bytes, at + 8).saturating_sub(MARGIN));
        let mut one = Marks::default();
        one.set(Mark { by, used });
        marks.unite(&one, (u32::MAX, 0));
    }
    Some(marks)
}
