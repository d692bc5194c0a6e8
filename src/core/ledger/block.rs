//! The bytes of marks, the same in the file and in a page. All numbers are little-endian.
//!
//! | at | bytes | content |
//! |--:|--:|---|
//! | 0 | 4 | `FLKM` |
//! | 4 | 2 | the version of the form |
//! | 6 | 2 | the oldest version that can read it |
//! | 8 | 8 | XXH3 of everything from 16 on |
//! | 16 | 2 + 2 + 1 + 1 | the numbers of marks and gaps; whether there are folded marks and the file's part |
//! | 24 | 16 | the bound of horizons: recalls, incarnation, instant |
//! | 40 | 8 | until when folded marks have used time |
//! | 48 | 72 | the file's part |
//! | 120 | 392 | room for later versions, which others keep as it is |
//! | 512 | 24 each | marks: node, number of nodes, incarnation, start, until |
//! | 4112 | 24 each | gaps: the mark's index, whether it is accepted, from, to |

use xxhash_rust::xxh3::xxh3_64;

use super::marks::{Bound, MAX_MARKS, Mark, Marks, Writer};
use super::used::{Free, Used};

/// Bytes of the form: a page of PostgreSQL has room for it.
pub const SIZE: usize = 8144;
/// Bytes that later versions may use.
pub const ROOM: usize = 392;
const ROOM_AT: usize = 120;
const MAGIC: [u8; 4] = *b"FLKM";
const VERSION: u16 = 1;
const MARKS_AT: usize = 512;
const GAPS_AT: usize = MARKS_AT + MAX_MARKS * 24;
const MAX_GAPS: usize = (SIZE - GAPS_AT) / 24;
/// The owner of folded marks' gaps.
const FOLDED: u16 = u16::MAX;

/// The part that only the file has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// Increases with every record.
    pub number: u64,
    /// The node in whose name it was written, and the number of nodes.
    pub node: (u32, u32),
    /// The timeline of the WAL; 0 on a standby, where it is not the server's own.
    pub wal_timeline: u32,
    /// Whether the server was waiting for an old primary: after a restart, it waits again.
    pub waits: bool,
    /// Written by the last session that exited; none while sessions make IDs.
    pub exit_note: Option<ExitNote>,
}

/// A note that is not flushed to disk: it counts as long as the run of the operating system that took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitNote {
    /// Identifies the run of the operating system.
    pub boot: u64,
    /// Of the open stretch, time from here on was not used ...
    pub free_from: i64,
    /// ... up to its end.
    pub until: i64,
}

/// Why bytes are not marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// They are something else, or damaged.
    #[error("contains no valid record")]
    Damaged,
    /// A later version has written them, in a form that this one cannot read.
    #[error("was written by a later version of the flake library")]
    Newer(u16),
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

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(get(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(get(bytes, at))
}

pub(super) fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(get(bytes, at))
}

impl Marks {
    /// Returns the bytes of marks, with the file's part if they are for the file. Where there is no room for all gaps, the
    /// earliest count as used.
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
            put(&mut bytes, 56, file.node.0.to_le_bytes());
            put(&mut bytes, 60, file.node.1.to_le_bytes());
            put(&mut bytes, 64, file.wal_timeline.to_le_bytes());
            put(&mut bytes, 69, [file.waits.into()]);
            if let Some(note) = file.exit_note {
                put(&mut bytes, 68, [1]);
                put(&mut bytes, 72, note.boot.to_le_bytes());
                put(&mut bytes, 80, note.free_from.to_le_bytes());
                put(&mut bytes, 88, note.until.to_le_bytes());
            }
        }
        put(&mut bytes, ROOM_AT, self.room);
        for (index, Mark { by, used }) in self.listed.iter().enumerate() {
            let at = MARKS_AT + index * 24;
            for (field, number) in [by.node.0, by.node.1, by.incarnation, by.start].into_iter().enumerate() {
                put(&mut bytes, at + field * 4, number.to_le_bytes());
            }
            put(&mut bytes, at + 16, used.until().to_le_bytes());
        }
        let gaps = self.gaps_with_room();
        put(&mut bytes, 18, (gaps.len() as u16).to_le_bytes());
        for (index, (owner, gap)) in gaps.into_iter().enumerate() {
            let at = GAPS_AT + index * 24;
            put(&mut bytes, at, owner.to_le_bytes());
            put(&mut bytes, at + 2, [gap.accepted.into()]);
            put(&mut bytes, at + 8, gap.from.to_le_bytes());
            put(&mut bytes, at + 16, gap.to.to_le_bytes());
        }
        let checksum = xxh3_64(&bytes[16..]);
        put(&mut bytes, 8, checksum.to_le_bytes());
        bytes
    }

    fn gaps_with_room(&self) -> Vec<(u16, Free)> {
        let owned = |(owner, used): (u16, &Used)| used.gaps().iter().map(|&gap| (owner, gap)).collect::<Vec<_>>();
        let listed = self.listed.iter().enumerate().map(|(index, mark)| (index as u16, &mark.used));
        let mut gaps: Vec<_> = listed.chain(self.folded.iter().map(|used| (FOLDED, used))).flat_map(owned).collect();
        if gaps.len() > MAX_GAPS {
            gaps.sort_by_key(|(_, gap)| std::cmp::Reverse(gap.from));
            gaps.truncate(MAX_GAPS);
        }
        gaps.sort_by_key(|(owner, gap)| (*owner, gap.from));
        gaps
    }

    /// Reads what [`Self::encode`] has written.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn decode(bytes: &[u8]) -> Result<(Self, Option<FilePart>), Unreadable> {
        if bytes.len() < SIZE || bytes[..4] != MAGIC || u64_at(bytes, 8) != xxh3_64(&bytes[16..SIZE]) {
            return Err(Unreadable::Damaged);
        }
        let needs = u16_at(bytes, 6);
        if needs > VERSION {
            return Err(Unreadable::Newer(u16_at(bytes, 4)));
        }
        let (listed, gaps) = (usize::from(u16_at(bytes, 16)), usize::from(u16_at(bytes, 18)));
        if listed > MAX_MARKS || gaps > MAX_GAPS {
            return Err(Unreadable::Damaged);
        }
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
                let at = MARKS_AT + index * 24;
                let [id, count, incarnation, start] = [0, 4, 8, 12].map(|field| u32_at(bytes, at + field));
                let by = Writer { node: (id, count), incarnation, start };
                Mark { by, used: used(index as u16, i64_at(bytes, at + 16)) }
            })
            .collect();
        let folded = (bytes[20] != 0).then(|| used(FOLDED, i64_at(bytes, 40)));
        let bound = Bound { recalls: u32_at(bytes, 24), incarnation: u32_at(bytes, 28), instant: i64_at(bytes, 32) };
        let file = (bytes[21] != 0).then(|| FilePart {
            number: u64_at(bytes, 48),
            node: (u32_at(bytes, 56), u32_at(bytes, 60)),
            wal_timeline: u32_at(bytes, 64),
            waits: bytes[69] != 0,
            exit_note: (bytes[68] != 0).then(|| ExitNote {
                boot: u64_at(bytes, 72),
                free_from: i64_at(bytes, 80),
                until: i64_at(bytes, 88),
            }),
        });
        Ok((Self { listed, folded, bound, room: get(bytes, ROOM_AT) }, file))
    }
}
