//! The format of marks in the file and in a page: `Block`. All numbers are little-endian.

use twox_hash::XxHash3_64;
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::bound::Bound;
use super::marks::{Author, MAX_MARKS, MAX_PUBLISHED, Mark, Marks, Published, ROOM};
use super::note::ExitNote;
use super::used::{Free, Used};
use crate::Turns;

/// The size of a block in bytes, which fits into a page of PostgreSQL.
pub const SIZE: usize = size_of::<Block>();
const MAGIC: [u8; 4] = *b"FLKM";
const VERSION: u16 = 1;
const MAX_GAPS: usize = 118;
/// The index of gaps that belong to folded marks.
const FOLDED: u16 = u16::MAX;

/// The bytes of a block. Unused entries of the lists are zeros.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Block {
    magic: [u8; 4],
    version: U16,
    /// The oldest version of the format whose readers understand it.
    needs: U16,
    checksum: U64,
    body: Body,
}

/// The bytes that the checksum covers.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Body {
    mark_count: U16,
    gap_count: U16,
    has_folded: u8,
    has_file: u8,
    _zeros: [u8; 2],
    recalls: U32,
    incarnation: U32,
    bound: I64,
    folded_until: I64,
    file: FileBytes,
    above: I64,
    published_count: U64,
    published: [PublishedBytes; MAX_PUBLISHED],
    turns: I64,
    /// Space for later versions, which this version copies unchanged.
    room: [u8; ROOM],
    listed: [MarkBytes; MAX_MARKS],
    gaps_of_marks: [GapBytes; MAX_GAPS],
}

const _: () = assert!(SIZE == 8144);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct FileBytes {
    number: U64,
    part: [U32; 2],
    _zeros: [u8; 48],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct PublishedBytes {
    horizon: I64,
    next_xid: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct MarkBytes {
    part: [U32; 2],
    incarnation: U32,
    start: U32,
    until: I64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct GapBytes {
    /// The index of the mark.
    mark: U16,
    is_accepted: u8,
    _zeros: [u8; 5],
    from: I64,
    to: I64,
}

/// The part that only the file contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// The number of the record, which increases with each one.
    pub number: u64,
    /// The part that wrote it, and the number of parts.
    pub part: (u32, u32),
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
    Block::ref_from_prefix(bytes).map_or(0, |(block, _)| block.checksum.get())
}

/// Writes elements to the beginning of a list. Returns how many.
fn fill<T, U>(list: &mut [T], elements: impl IntoIterator<Item = U>, encode: impl Fn(U) -> T) -> usize {
    list.iter_mut().zip(elements).map(|(place, element)| *place = encode(element)).count()
}

impl Marks {
    /// Encodes the marks, with the file's part if they are for the file. If not all gaps fit, the earliest ones count as used.
    pub fn encode(&self, file: Option<&FilePart>) -> Vec<u8> {
        let mut body = Body::new_zeroed();
        body.has_folded = self.folded.is_some().into();
        body.recalls = self.bound.recalls.into();
        body.incarnation = self.bound.incarnation.into();
        body.bound = self.bound.instant.into();
        body.folded_until = self.folded.map_or(0, |folded| folded.until()).into();
        body.above = self.above.into();
        body.room = self.room;
        body.turns = self.turns.number().into();
        if let Some(&FilePart { number, part, .. }) = file {
            body.has_file = 1;
            let part = [part.0.into(), part.1.into()];
            body.file = FileBytes { number: number.into(), part, _zeros: [0; 48] };
        }
        let published = fill(&mut body.published, &self.published, |one| PublishedBytes {
            horizon: one.horizon.into(),
            next_xid: one.next.into(),
        });
        let marks = fill(&mut body.listed, &self.listed, |Mark { by, used }| MarkBytes {
            part: [by.part.0.into(), by.part.1.into()],
            incarnation: by.incarnation.into(),
            start: by.start.into(),
            until: used.until().into(),
        });
        let gaps = fill(&mut body.gaps_of_marks, self.gaps_with_room(), |(mark, gap)| GapBytes {
            mark: mark.into(),
            is_accepted: gap.accepted.into(),
            _zeros: [0; 5],
            from: gap.from.into(),
            to: gap.to.into(),
        });
        body.published_count = (published as u64).into();
        (body.mark_count, body.gap_count) = ((marks as u16).into(), (gaps as u16).into());
        let checksum = XxHash3_64::oneshot(body.as_bytes()).into();
        let block = Block { magic: MAGIC, version: VERSION.into(), needs: VERSION.into(), checksum, body };
        block.as_bytes().to_vec()
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
        let (block, _) = Block::ref_from_prefix(bytes).map_err(|_| Unreadable::Damaged)?;
        let Block { magic, version, needs, checksum, body } = block;
        if *magic != MAGIC || checksum.get() != XxHash3_64::oneshot(body.as_bytes()) {
            return Err(Unreadable::Damaged);
        }
        if needs.get() > VERSION {
            return Err(Unreadable::Newer(version.get()));
        }
        let listed = body.listed.get(..body.mark_count.get().into()).ok_or(Unreadable::Damaged)?;
        let gaps = body.gaps_of_marks.get(..body.gap_count.get().into()).ok_or(Unreadable::Damaged)?;
        let published_count = usize::try_from(body.published_count.get()).map_err(|_| Unreadable::Damaged)?;
        let published = body.published.get(..published_count).ok_or(Unreadable::Damaged)?;
        let used = |mark: u16, until: I64| {
            let until = until.get();
            let own = gaps.iter().filter(|gap| gap.mark.get() == mark && gap.to.get() <= until);
            let gap = |gap: &GapBytes| Free { from: gap.from.get(), to: gap.to.get(), accepted: gap.is_accepted != 0 };
            Used::except(until, own.map(gap))
        };
        let mark = |(index, mark): (u16, &MarkBytes)| Mark {
            by: Author {
                part: (mark.part[0].get(), mark.part[1].get()),
                incarnation: mark.incarnation.get(),
                start: mark.start.get(),
            },
            used: used(index, mark.until),
        };
        let marks = Self {
            listed: (0..).zip(listed).map(mark).collect(),
            folded: (body.has_folded != 0).then(|| used(FOLDED, body.folded_until)),
            above: body.above.get(),
            bound: Bound {
                recalls: body.recalls.get(),
                incarnation: body.incarnation.get(),
                instant: body.bound.get(),
            },
            published: published
                .iter()
                .map(|one| Published { horizon: one.horizon.get(), next: one.next_xid.get() })
                .collect(),
            turns: Turns::numbered(body.turns.get()),
            room: body.room,
        };
        let file = (body.has_file != 0).then(|| FilePart {
            number: body.file.number.get(),
            part: (body.file.part[0].get(), body.file.part[1].get()),
            exit_note: None,
        });
        Ok((marks, file))
    }
}
