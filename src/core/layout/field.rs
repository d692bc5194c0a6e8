//! The fields of an ID.

use std::borrow::Cow;

/// The purpose of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The tick, counted from the epoch.
    Timestamp {
        /// Whether bit 0 of the tick is the field's most significant bit.
        reversed: Reversal,
    },
    /// A part of the worker number. The field with the lowest rank is the coarsest part; equal ranks count from the
    /// most significant bit down.
    Worker {
        /// Coarsest first.
        rank: u8,
    },
    /// The number that distinguishes the IDs of one tick and worker.
    Sequence,
    /// A number of the caller's, which does not make IDs unique.
    Tag,
    /// Fresh random bits in every ID.
    Random,
    /// A bit that says whether the timestamp is reversed; see [`Reversal::UnlessFlagged`].
    Flag,
    /// Bits that always hold `value`.
    Reserved {
        /// The only number that the field may hold.
        value: u64,
    },
}

/// Whether the bits of a timestamp are stored in the opposite order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reversal {
    /// They are in order.
    Never,
    /// They are reversed.
    Always,
    /// They are reversed in IDs whose flag is 0.
    UnlessFlagged,
}

/// A named run of bits. Fields of the same name are the parts of one number, the coarsest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: Cow<'static, str>,
    /// Width in bits.
    pub bits: u8,
    /// The purpose of the bits.
    pub role: Role,
}
