//! The format of a record in the file and in a page: `Block`. All numbers are little-endian.

use twox_hash::XxHash3_64;
use zerocopy::little_endian::{I64, U16, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::record::{MAX_PUBLISHED, Published, Record, Reserved, SPARE_BYTES};
use crate::Turns;

/// The size of a block in bytes: a sector of a disk, and much less than a page of PostgreSQL.
pub const SIZE: usize = size_of::<Block>();
const MAGIC: [u8; 4] = *b"FLKM";
const VERSION: u16 = 1;

/// The bytes of a block. Unused entries of the list are zeros.
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
    /// In the file, the number of the record, which increases with each one; 0 in a page.
    number: U64,
    writer: U64,
    acceptances: U64,
    until: [I64; 2],
    turns: I64,
    published_count: U64,
    published: [PublishedBytes; MAX_PUBLISHED],
    /// Space for later versions, which this version copies unchanged.
    room: [u8; SPARE_BYTES],
}

const _: () = assert!(SIZE == 512);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct PublishedBytes {
    watermark: I64,
    next_xid: U64,
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

impl Record {
    /// Encodes the record. `number` is its number in the file, or 0 for a page.
    pub fn encode(&self, number: u64) -> Vec<u8> {
        let mut body = Body::new_zeroed();
        body.number = number.into();
        body.writer = self.writer.into();
        body.acceptances = self.reserved.acceptances.into();
        body.until = self.reserved.until.map(I64::new);
        body.turns = self.turns.number().into();
        body.room = self.room;
        for (place, one) in body.published.iter_mut().zip(&self.published) {
            *place = PublishedBytes { watermark: one.watermark.into(), next_xid: one.next.into() };
        }
        body.published_count = (self.published.len().min(MAX_PUBLISHED) as u64).into();
        let checksum = XxHash3_64::oneshot(body.as_bytes()).into();
        let block = Block { magic: MAGIC, version: VERSION.into(), needs: VERSION.into(), checksum, body };
        block.as_bytes().to_vec()
    }

    /// Decodes a block. Returns the record's number, too.
    ///
    /// # Errors
    /// See [`Unreadable`].
    pub fn decode(bytes: &[u8]) -> Result<(Self, u64), Unreadable> {
        let (block, _) = Block::ref_from_prefix(bytes).map_err(|_| Unreadable::Damaged)?;
        let Block { magic, version, needs, checksum, body } = block;
        if *magic != MAGIC || checksum.get() != XxHash3_64::oneshot(body.as_bytes()) {
            return Err(Unreadable::Damaged);
        }
        if needs.get() > VERSION {
            return Err(Unreadable::Newer(version.get()));
        }
        let count = usize::try_from(body.published_count.get()).map_err(|_| Unreadable::Damaged)?;
        let published = body.published.get(..count).ok_or(Unreadable::Damaged)?;
        let published =
            published.iter().map(|one| Published { watermark: one.watermark.get(), next: one.next_xid.get() });
        let record = Self {
            reserved: Reserved { acceptances: body.acceptances.get(), until: body.until.map(I64::get) },
            writer: body.writer.get(),
            turns: Turns::from_number(body.turns.get()),
            published: published.collect(),
            room: body.room,
        };
        Ok((record, body.number.get()))
    }
}
