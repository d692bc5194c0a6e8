//! Layouts: how the bits of an ID are divided. This file checks every division.

use std::borrow::Cow;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use crate::bits::{Bits, MAX_RUNS, Scattered};
use crate::share::most_steps;
use crate::{TextForm, key};

/// 4714-11-24 BC, Julian day 0: the first instant of a timestamptz.
const FIRST_INSTANT: i64 = -210_866_803_200_000_000;

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
    /// The caller's own number; takes no part in uniqueness.
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

/// How the sequence changes when a tick begins. With either rule, a tick has at most as many IDs as the share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SequenceRule {
    /// It restarts at the beginning of the share.
    Reset,
    /// It continues from where it was.
    Rolling,
}

impl SequenceRule {
    /// The rule's name in SQL and in definitions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Rolling => "rolling",
        }
    }
}

/// A checked division of at most 64 bits. Instants are microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub(crate) name: Cow<'static, str>,
    pub(crate) epoch: i64,
    pub(crate) tick_length: i64,
    pub(crate) fields: Cow<'static, [Field]>,
    pub(crate) rule: SequenceRule,
    pub(crate) text: TextForm,
    pub(crate) generates: bool,
    pub(crate) source: Cow<'static, str>,
    pub(crate) geometry: Geometry,
}

/// Where each role's bits lie. It follows from the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Geometry {
    pub width: u32,
    pub timestamp: Bits,
    /// The last tick that the timestamp can hold and that ends at an instant.
    pub last_tick: u64,
    pub reversed: Reversal,
    pub flag: Bits,
    pub tag: Bits,
    pub worker: Scattered,
    pub sequence: Bits,
    pub random_mask: u64,
    /// The bits that are the same in every ID, including those above the layout's width, and what they hold.
    pub fixed_mask: u64,
    pub fixed: u64,
    /// The order of the (unsigned) IDs is the order of their ticks.
    pub time_ordered: bool,
}

/// Why an epoch, a tick and fields do not make a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A tick must last at least a microsecond.
    #[error("the tick must be longer than zero")]
    Tick,
    /// Tick 0 must end at an instant.
    #[error("the first tick would end after the year 294246")]
    LongTick,
    /// Every tick must begin at an instant that PostgreSQL can show.
    #[error("the epoch is before 4714-11-24 BC, where PostgreSQL's timestamps begin")]
    EarlyEpoch,
    /// Every field has at least one bit.
    #[error("field number {0} has no bits")]
    EmptyField(usize),
    /// All fields together have to fit 64 bits.
    #[error("the fields need {0} bits, but an ID has 64")]
    TooWide(u32),
    /// A layout has exactly one timestamp.
    #[error("a layout must have exactly one timestamp field, not {0}")]
    Timestamps(u32),
    /// A layout has at most one sequence.
    #[error("a layout must have at most one sequence field, not {0}")]
    Sequences(u32),
    /// A layout has at most one tag.
    #[error("a layout must have at most one tag field, not {0}")]
    Tags(u32),
    /// A worker number is stored in a limited number of fields.
    #[error("a layout must have at most {MAX_RUNS} worker fields, not {found}")]
    Workers {
        /// How many there are.
        found: usize,
    },
    /// A reserved field's value must fit it.
    #[error("the value of reserved field number {0} does not fit its bits")]
    ReservedValue(usize),
}

impl Geometry {
    pub const fn new(epoch: i64, tick: i64, fields: &[Field]) -> Result<Self, Fault> {
        if tick <= 0 {
            return Err(Fault::Tick);
        }
        if epoch < FIRST_INSTANT {
            return Err(Fault::EarlyEpoch);
        }
        let mut width = 0;
        let (mut timestamps, mut sequences, mut workers, mut tags) = (0, 0, 0, 0);
        let mut i = 0;
        while i < fields.len() {
            if fields[i].bits == 0 {
                return Err(Fault::EmptyField(i + 1));
            }
            width += fields[i].bits as u32;
            match fields[i].role {
                Role::Timestamp { .. } => timestamps += 1,
                Role::Sequence => sequences += 1,
                Role::Worker { .. } => workers += 1,
                Role::Tag => tags += 1,
                Role::Random | Role::Flag | Role::Reserved { .. } => {}
            }
            i += 1;
        }
        if width > 64 {
            return Err(Fault::TooWide(width));
        }
        if timestamps != 1 {
            return Err(Fault::Timestamps(timestamps));
        }
        if sequences > 1 {
            return Err(Fault::Sequences(sequences));
        }
        if tags > 1 {
            return Err(Fault::Tags(tags));
        }
        if workers > MAX_RUNS {
            return Err(Fault::Workers { found: workers });
        }

        let above = if width == 64 { 0 } else { u64::MAX << width };
        let mut geometry = Self {
            width,
            timestamp: Bits::NONE,
            last_tick: 0,
            reversed: Reversal::Never,
            flag: Bits::NONE,
            tag: Bits::NONE,
            worker: worker_bits(fields),
            sequence: Bits::NONE,
            random_mask: 0,
            fixed_mask: above,
            fixed: 0,
            time_ordered: true,
        };
        let (mut shift, mut i) = (width, 0);
        while i < fields.len() {
            let field_width = fields[i].bits as u32;
            shift -= field_width;
            let bits = Bits { shift, width: field_width };
            match fields[i].role {
                Role::Timestamp { reversed } => {
                    geometry.timestamp = bits;
                    geometry.reversed = reversed;
                    geometry.time_ordered &= matches!(reversed, Reversal::Never);
                }
                Role::Sequence => geometry.sequence = bits,
                Role::Tag => geometry.tag = bits,
                Role::Flag => geometry.flag = bits,
                Role::Random => geometry.random_mask |= bits.mask(),
                Role::Worker { .. } => {}
                Role::Reserved { value } => {
                    if value > bits.max() {
                        return Err(Fault::ReservedValue(i + 1));
                    }
                    geometry.fixed_mask |= bits.mask();
                    geometry.fixed |= bits.put(value);
                }
            }
            let varies = !matches!(fields[i].role, Role::Timestamp { .. } | Role::Reserved { .. });
            if varies && geometry.timestamp.width == 0 {
                geometry.time_ordered = false;
            }
            i += 1;
        }
        // An instant is 64 bits of microseconds, which limits a wide timestamp to the year 294246.
        let ticks = (i64::MAX as i128 - epoch as i128) / tick as i128;
        if ticks < 1 {
            return Err(Fault::LongTick);
        }
        let most = geometry.timestamp.max();
        geometry.last_tick = if ticks - 1 < most as i128 { ticks as u64 - 1 } else { most };
        Ok(geometry)
    }

    /// The timestamp bits of a tick and the reserved bits, in an ID without a flag.
    pub const fn time_bits(&self, tick: u64) -> u64 {
        self.timestamp.put(self.turn(tick, 0)) | self.fixed
    }

    /// Where the ticks of all layouts with the same place lie in the same bits. Where they are not reversed, more bits above
    /// them only let the layout last longer.
    const fn time_place(&self) -> (u32, Reversal, u32) {
        let Bits { shift, width } = self.timestamp;
        (shift, self.reversed, if matches!(self.reversed, Reversal::Never) { 0 } else { width })
    }

    /// Converts a tick to what its field stores in this ID, and back.
    pub const fn turn(&self, tick: u64, id: u64) -> u64 {
        match self.reversed {
            Reversal::Never => return tick,
            Reversal::UnlessFlagged if self.flag.get(id) != 0 => return tick,
            Reversal::Always | Reversal::UnlessFlagged => {}
        }
        tick.reverse_bits() >> (64 - self.timestamp.width)
    }
}

/// Collects the worker number's bits from its finest field up: the highest rank first, and within a rank the least
/// significant field first.
const fn worker_bits(fields: &[Field]) -> Scattered {
    let mut worker = Scattered::NONE;
    let mut rank = u8::MAX as i32;
    while rank >= 0 {
        let (mut shift, mut i) = (0, fields.len());
        while i > 0 {
            i -= 1;
            let bits = Bits { shift, width: fields[i].bits as u32 };
            if let Role::Worker { rank: r } = fields[i].role
                && r as i32 == rank
            {
                worker = worker.extended_by(bits);
            }
            shift += bits.width;
        }
        rank -= 1;
    }
    worker
}

impl Layout {
    /// Creates a custom layout. `epoch` is an instant, `tick_length` a number of microseconds; `fields` run from the most
    /// significant bit down.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        epoch: i64,
        tick_length: i64,
        fields: Vec<Field>,
        rule: SequenceRule,
    ) -> Result<Self, Fault> {
        let geometry = Geometry::new(epoch, tick_length, &fields)?;
        let (name, fields, source) = (name.into(), Cow::Owned(fields), Cow::Borrowed("custom"));
        let (text, generates) = (TextForm::Decimal, true);
        Ok(Self { name, epoch, tick_length, fields, rule, text, generates, source, geometry })
    }

    /// The name, as SQL functions take it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The instant of tick 0.
    pub const fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The length of a tick in microseconds.
    pub const fn tick_length(&self) -> i64 {
        self.tick_length
    }

    /// The fields from the most significant bit down.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// How the sequence changes when a tick begins.
    pub const fn rule(&self) -> SequenceRule {
        self.rule
    }

    /// How its IDs are written.
    pub const fn text(&self) -> TextForm {
        self.text
    }

    /// Whether flake makes IDs in this layout; it reads some formats only.
    pub const fn generates(&self) -> bool {
        self.generates
    }

    /// Whether its IDs hold a number of the caller's.
    pub const fn has_tag(&self) -> bool {
        self.geometry.tag.width > 0
    }

    /// Whether both layouts divide the same time into ticks and have the same bits for everything, so that they make the
    /// same IDs. Such layouts share their generators.
    pub fn same_bits(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }

    /// A number for its bits and time: the same for layouts that share generators, different for others.
    pub fn key(&self) -> u64 {
        key::of_layout(&self.identity())
    }

    fn identity(&self) -> impl Hash + PartialEq {
        let Geometry { worker, sequence, tag, flag, random_mask, fixed, .. } = self.geometry;
        // Which bits hold the value 0 beside the others makes no difference.
        (self.epoch, self.tick_length, self.geometry.time_place(), worker, sequence, tag, flag, random_mask, fixed)
    }

    /// Whether the layouts, although their bits differ, may make the same ID at the same time, because no bit tells them
    /// apart.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (own, others) = (&self.geometry, &other.geometry);
        let mask = |geometry: &Geometry| geometry.fixed_mask | geometry.timestamp.mask();
        (self.epoch, self.tick_length, own.time_place()) == (other.epoch, other.tick_length, others.time_place())
            && !self.same_bits(other)
            && (own.fixed ^ others.fixed) & mask(own) & mask(others) == 0
    }

    /// Whether the IDs that a session makes in one statement increase, as long as the layout is ordered by time.
    pub const fn increases(&self) -> bool {
        let geometry = &self.geometry;
        let counted = geometry.worker.mask() | geometry.sequence.mask();
        let uncounted = geometry.random_mask | geometry.tag.mask();
        // A rolling sequence goes back where a tick has one step only.
        let goes_on = matches!(self.rule, SequenceRule::Reset) || most_steps(self.tick_length) > 1;
        let in_order = counted == 0 || uncounted < counted & counted.wrapping_neg();
        geometry.time_ordered && goes_on && geometry.worker.is_one_run() && in_order
    }

    /// Where the layout comes from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How many bits the fields take.
    pub const fn width(&self) -> u32 {
        self.geometry.width
    }

    /// How many worker numbers there are: W, from 1 to 2^63.
    pub const fn workers(&self) -> u64 {
        1 << self.geometry.worker.width()
    }

    /// How many sequence numbers there are: S, from 1 to 2^63.
    pub const fn sequences(&self) -> u64 {
        1 << self.geometry.sequence.width
    }

    /// How many IDs all workers together can make in a tick: W × S.
    pub const fn ids_per_tick(&self) -> u64 {
        1 << (self.geometry.worker.width() + self.geometry.sequence.width)
    }
}
