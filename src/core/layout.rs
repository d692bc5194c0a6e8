//! Layouts: how the bits of an ID are divided, and the one place where a division is checked.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use crate::TextForm;
use crate::bits::{Bits, Scattered};

/// What a field of a layout is for.
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
    /// The number that tells IDs of one tick and worker apart.
    Sequence,
    /// The caller's own number; takes no part in uniqueness.
    Tag,
    /// Fresh random bits in every ID.
    Random,
    /// A bit that says whether the timestamp is reversed, see [`Reversal::UnlessFlagged`].
    Flag,
    /// Bits that always hold `value`.
    Reserved {
        /// The only number allowed here.
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

/// A named run of bits. Fields of one name are the parts of one number, the coarsest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: Cow<'static, str>,
    /// Width in bits.
    pub bits: u8,
    /// What the bits are for.
    pub role: Role,
}

/// What becomes of the sequence when a new tick begins. Both rules give at most a share's size of IDs per tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SequenceRule {
    /// It restarts at the beginning of the share.
    Reset,
    /// It goes on from where it was.
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
    pub(crate) tick: i64,
    pub(crate) fields: Cow<'static, [Field]>,
    pub(crate) rule: SequenceRule,
    pub(crate) text: TextForm,
    pub(crate) generates: bool,
    pub(crate) source: Cow<'static, str>,
    pub(crate) geometry: Geometry,
}

/// Where each role's bits lie; follows from the fields alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Geometry {
    pub width: u32,
    pub timestamp: Bits,
    /// The last tick that the timestamp can hold and whose end is an instant.
    pub last_tick: u64,
    pub reversed: Reversal,
    pub flag: Bits,
    pub tag: Bits,
    pub worker: Scattered,
    pub sequence: Bits,
    pub random_mask: u64,
    /// Bits that are the same in every ID, those above the layout's width among them, and what they hold.
    pub fixed_mask: u64,
    pub fixed: u64,
    /// The order of the (unsigned) IDs is the order of their ticks.
    pub time_ordered: bool,
}

/// Why fields, epoch and tick make no layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A tick must last at least a microsecond.
    #[error("the tick must be longer than zero")]
    Tick,
    /// Tick 0 must end at an instant.
    #[error("the first tick would end beyond the year 294246")]
    LongTick,
    /// Every field needs at least one bit.
    #[error("field number {0} has no bits")]
    EmptyField(usize),
    /// All fields together fit 64 bits.
    #[error("the fields need {0} bits, an ID has 64")]
    TooWide(u32),
    /// Exactly one timestamp.
    #[error("a layout has exactly one timestamp, here are {0}")]
    Timestamps(u32),
    /// At most one sequence.
    #[error("a layout has at most one sequence, here are {0}")]
    Sequences(u32),
    /// At most one tag.
    #[error("a layout has at most one tag, here are {0}")]
    Tags(u32),
    /// A worker number has a limited number of parts.
    #[error("a layout has at most {most} worker fields, here are {found}", most = Scattered::MOST)]
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
        if workers > Scattered::MOST {
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
        // Instants are 64 bits of microseconds, so a long timestamp is cut at the year 294247.
        let ticks = (i64::MAX as i128 - epoch as i128) / tick as i128;
        if ticks < 1 {
            return Err(Fault::LongTick);
        }
        let most = geometry.timestamp.max();
        geometry.last_tick = if ticks - 1 < most as i128 { ticks as u64 - 1 } else { most };
        Ok(geometry)
    }

    /// The timestamp of a tick at its place, and the reserved bits, in an ID without a flag.
    pub const fn time_bits(&self, tick: u64) -> u64 {
        self.timestamp.put(self.turn(tick, 0)) | self.fixed
    }

    /// A tick as its field stores it in this ID, and back.
    pub const fn turn(&self, tick: u64, id: u64) -> u64 {
        match self.reversed {
            Reversal::Never => return tick,
            Reversal::UnlessFlagged if self.flag.get(id) != 0 => return tick,
            Reversal::Always | Reversal::UnlessFlagged => {}
        }
        tick.reverse_bits() >> (64 - self.timestamp.width)
    }
}

/// The worker number's bits, put together from its finest field up: highest rank first, and within a rank from the
/// least significant field up.
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
                worker = worker.above(bits);
            }
            shift += bits.width;
        }
        rank -= 1;
    }
    worker
}

impl Layout {
    /// A layout of one's own. `epoch` is an instant, `tick` a number of microseconds, `fields` run from the most
    /// significant bit down.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        epoch: i64,
        tick: i64,
        fields: Vec<Field>,
        rule: SequenceRule,
    ) -> Result<Self, Fault> {
        let geometry = Geometry::new(epoch, tick, &fields)?;
        let (name, fields, source) = (name.into(), Cow::Owned(fields), Cow::Borrowed("custom"));
        let (text, generates) = (TextForm::Decimal, true);
        Ok(Self { name, epoch, tick, fields, rule, text, generates, source, geometry })
    }

    /// Name, as SQL callers write it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The instant of tick 0.
    pub const fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Length of a tick in microseconds.
    pub const fn tick(&self) -> i64 {
        self.tick
    }

    /// Fields from the most significant bit down.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// What becomes of the sequence when a tick begins.
    pub const fn rule(&self) -> SequenceRule {
        self.rule
    }

    /// How its IDs are written.
    pub const fn text(&self) -> TextForm {
        self.text
    }

    /// Whether IDs can be made in it; some formats are known well enough to be read only.
    pub const fn generates(&self) -> bool {
        self.generates
    }

    /// Whether the caller may put a number of its own into IDs.
    pub const fn has_tag(&self) -> bool {
        self.geometry.tag.width > 0
    }

    /// Whether both lay out the same bits in the same time, so that an ID of one could be an ID of the other: they
    /// have to share their generators.
    pub fn same_bits(&self, other: &Self) -> bool {
        (self.epoch, self.tick, self.geometry) == (other.epoch, other.tick, other.geometry)
    }

    /// A number for those bits in that time: the same for layouts of the same bits, different for others.
    pub fn key(&self) -> u64 {
        let mut hasher = Xxh3Default::new();
        (self.epoch, self.tick, self.geometry).hash(&mut hasher);
        hasher.finish()
    }

    /// Who defined this layout.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Bits that the fields take.
    pub const fn width(&self) -> u32 {
        self.geometry.width
    }

    /// Number of different worker numbers, W in 1..=2^63.
    pub const fn workers(&self) -> u64 {
        1 << self.geometry.worker.width()
    }

    /// Number of different sequence numbers, S in 1..=2^63.
    pub const fn sequences(&self) -> u64 {
        1 << self.geometry.sequence.width
    }

    /// W × S: how many IDs all workers together can make in a tick.
    pub const fn ids_per_tick(&self) -> u64 {
        1 << (self.geometry.worker.width() + self.geometry.sequence.width)
    }
}
