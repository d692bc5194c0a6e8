//! The format of marks in the file and in a page. All numbers are little-endian.
//!
//! | at | bytes | content |
//! |--:|--:|---|
//! | 0 | 4 | `FLKM` |
//! | 4 | 2 | the version of the format |
//! | 6 | 2 | the oldest version of the format whose readers understand it |
//! | 8 | 8 | XXH3 of all bytes from 16 on |
//! | 16 | 2 + 2 + 1 + 1 | the number of marks, the number of gaps, whether folded marks follow, whether the file's part follows |
//! | 24 | 16 | the bound of horizons: recalls, incarnation, instant |
//! | 40 | 8 | until when folded marks have used time |
//! | 48 | 64 | the file's part: 23 bytes, then zeros |
//! | 112 | 8 | the instant that flake_start_above was given |
//! | 120 | 8 | the number of published horizons |
//! | 128 | 16 each | published horizons: the instant, the next transaction ID |
//! | 320 | 192 | space for later versions; this version copies it unchanged |
//! | 512 | 24 each | marks: part, number of parts, incarnation, start, the end of used time |
//! | 5312 | 24 each | gaps: index of the mark, whether it is accepted, from, to |

use xxhash_rust::xxh3::xxh3_64;

use super::bound::Bound;
use super::marks::{Author, MAX_MARKS, MAX_PUBLISHED, Mark, Marks, Published, ROOM};
use super::note::ExitNote;
use super::used::{Free, Used};

/// The size of a block in bytes, which fits into a page of PostgreSQL.
pub const SIZE: usize = 8144;
const PUBLISHED_AT: usize = 128;
const ROOM_AT: usize = PUBLISHED_AT + MAX_PUBLISHED * 16;
const MAGIC: [u8; 4] = *b"FLKM";
const VERSION: u16 = 1;
const MARKS_AT: usize = ROOM_AT + ROOM;
const MARK: usize = 24;
const GAPS_AT: usize = MARKS_AT + MAX_MARKS * MARK;
const MAX_GAPS: usize = (SIZE - GAPS_AT) / 24;
/// The index of gaps that belong to folded marks.
const FOLDED: u16 = u16::MAX;

/// The part that only the file contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// The number of the record, which increases with each one.
    pub number: u64,
    /// The part that wrote it, and the number of parts.
    pub part: (u32, u32),
    /// The timeline of the WAL that the server writes.
    pub wal_timeline: u32,
    /// The exit note, written by the last session that exited. There is none while sessions make IDs. It lies behind the two
    /// blocks.
    pub exit_note: Option<ExitNote>,
}

/// Why a block cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is something else, or it is damaged.
    #[error("contains no valid record")]
    Damaged,
    /// A later version wrote it, in a format that this version cannot read.
    #[error("was written by a later version of the flake library")]
    Newer(u16),
}

/// Returns the checksum of a block.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    u64_at(bytes, 8)
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, field: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&field);
}

fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut got = [0; N];
    got.copy_from_slice(&bytes[at..at + N]);
    got
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(get(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(get(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(get(bytes, at))
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(get(bytes, at))
}

impl Marks {
    /// Encodes the marks, with the file's part if they are for the file. If not all gaps fit, the earliest ones count as used.
    pub fn encode(&self, file: Option<&FilePart>) -> Vec<u8> {
        let mut bytes = vec![0; SIZE];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 4, VERSION.to_le_bytes());
        put(&mut bytes, 6, VERSION.to_le_bytes());
        put(&mut bytes, 16, (self.listed.len() as u16).to_le_bytes());
        put(&mut bytes, 20, [self.folded.is_some().into()]);
        put(&mut bytes, 21, [file.is_some().into()]);
        put(&mut bytes, 24, self.bound.recalls.to_le_bytes());
        put(&mut bytes, 28, self.bound.incarnation.to_le_bytes());
        put(&mut bytes, 32, self.bound.instant.to_le_bytes());
        put(&mut bytes, 40, self.folded.map_or(0, |folded| folded.until()).to_le_bytes());
        if let Some(file) = file {
            put(&mut bytes, 48, file.number.to_le_bytes());
            put(&mut bytes, 56, file.part.0.to_le_bytes());
            put(&mut bytes, 60, file.part.1.to_le_bytes());
            put(&mut bytes, 64, file.wal_timeline.to_le_bytes());
        }
        put(&mut bytes, 112, self.above.to_le_bytes());
        put(&mut bytes, 120, (self.published.len() as u64).to_le_bytes());
        for (at, one) in (PUBLISHED_AT..).step_by(16).zip(&self.published) {
            put(&mut bytes, at, one.horizon.to_le_bytes());
            put(&mut bytes, at + 8, one.next.to_le_bytes());
        }
        put(&mut bytes, ROOM_AT, self.room);
        for (index, Mark { by, used }) in self.listed.iter().enumerate() {
            let at = MARKS_AT + index * MARK;
            for (field, number) in [by.part.0, by.part.1, by.incarnation, by.start].into_iter().enumerate() {
                put(&mut bytes, at + field * 4, number.to_le_bytes());
            }
            put(&mut bytes, at + 16, used.until().to_le_bytes());
        }
        let gaps = self.gaps_with_room();
        put(&mut bytes, 18, (gaps.len() as u16).to_le_bytes());
        for (index, (mark, gap)) in gaps.into_iter().enumerate() {
            let at = GAPS_AT + index * 24;
            put(&mut bytes, at, mark.to_le_bytes());
            put(&mut bytes, at + 2, [gap.accepted.into()]);
            put(&mut bytes, at + 8, gap.from.to_le_bytes());
            put(&mut bytes, at + 16, gap.to.to_le_bytes());
        }
        let checksum = xxh3_64(&bytes[16..]);
        put(&mut bytes, 8, checksum.to_le_bytes());
        bytes
    }

    /// Returns the gaps, each with the index of its mark.
    fn gaps_with_room(&self) -> Vec<(u16, Free)> {
        let sets = self.listed.iter().enumerate().map(|(index, mark)| (index as u16, &mark.used));
        let sets = sets.chain(self.folded.iter().map(|used| (FOLDED, used)));
        let mut gaps: Vec<_> =
            sets.flat_map(|(owner, used)| used.gaps().iter().map(move |&gap| (owner, gap))).collect();
        if gaps.len() > MAX_GAPS {
            gaps.sort_by_key(|(_, gap)| std::cmp::Reverse(gap.from));
            gaps.truncate(MAX_GAPS);
        }
        gaps.sort_by_key(|(owner, gap)| (*owner, gap.from));
        gaps
    }

    /// Decodes a block.
    ///
    /// # Errors
    /// See [`Unreadable`].
    pub fn decode(bytes: &[u8]) -> Result<(Self, Option<FilePart>), Unreadable> {
        if bytes.len() < SIZE || bytes[..4] != MAGIC || u64_at(bytes, 8) != xxh3_64(&bytes[16..SIZE]) {
            return Err(Unreadable::Damaged);
        }
        let needs = u16_at(bytes, 6);
        if needs > VERSION {
            return Err(Unreadable::Newer(u16_at(bytes, 4)));
        }
        let (listed, gaps) = (usize::from(u16_at(bytes, 16)), usize::from(u16_at(bytes, 18)));
        let published = u64_at(bytes, 120);
        if listed > MAX_MARKS || gaps > MAX_GAPS || published > MAX_PUBLISHED as u64 {
            return Err(Unreadable::Damaged);
        }
        let published = (PUBLISHED_AT..).step_by(16).take(published as usize);
        let published =
            published.map(|at| Published { horizon: i64_at(bytes, at), next: u64_at(bytes, at + 8) }).collect();
        let gaps: Vec<(u16, Free)> = (0..gaps)
            .map(|index| {
                let at = GAPS_AT + index * 24;
                let gap =
                    Free { accepted: bytes[at + 2] != 0, from: i64_at(bytes, at + 8), to: i64_at(bytes, at + 16) };
                (u16_at(bytes, at), gap)
            })
            .collect();
        let used = |owner: u16, until: i64| {
            Used::except(until, gaps.iter().filter(|(of, gap)| *of == owner && gap.to <= until).map(|(_, gap)| *gap))
        };
        let listed = (0..listed)
            .map(|index| {
                let at = MARKS_AT + index * MARK;
                let [id, count, incarnation, start] = [0, 4, 8, 12].map(|field| u32_at(bytes, at + field));
                let used = used(index as u16, i64_at(bytes, at + 16));
                Mark { by: Author { part: (id, count), incarnation, start }, used }
            })
            .collect();
        let folded = (bytes[20] != 0).then(|| used(FOLDED, i64_at(bytes, 40)));
        let bound = Bound { recalls: u32_at(bytes, 24), incarnation: u32_at(bytes, 28), instant: i64_at(bytes, 32) };
        let file = (bytes[21] != 0).then(|| FilePart {
            number: u64_at(bytes, 48),
            part: (u32_at(bytes, 56), u32_at(bytes, 60)),
            wal_timeline: u32_at(bytes, 64),
            exit_note: None,
        });
        let above = i64_at(bytes, 112);
        Ok((Self { listed, folded, above, bound, published, room: get(bytes, ROOM_AT) }, file))
    }
}
