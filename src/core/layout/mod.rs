//! Layouts: how the bits of an ID are divided, and time into ticks.

pub(crate) mod bits;
pub(crate) mod builtin;
pub(crate) mod definition;
pub(crate) mod field;
pub(crate) mod geometry;
pub(crate) mod text_form;
pub(crate) mod ticks;

use std::borrow::Cow;
use std::hash::Hash;

use self::field::{Field, Role};
use self::geometry::Geometry;
use self::text_form::TextForm;
use self::ticks::Ticks;
use crate::error::{Error, Fault};

/// How many characters the name of a layout has at most.
pub const LONGEST_NAME: usize = 63;
/// How long a step lasts at most, in microseconds, if there are enough IDs. Shorter steps would not make an index smaller.
pub const MAX_STEP_MICROS: u64 = 16;

/// A checked division of at most 64 bits. Instants are microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub(crate) name: Cow<'static, str>,
    pub(crate) epoch: i64,
    pub(crate) tick_length: i64,
    pub(crate) fields: Cow<'static, [Field]>,
    /// How its IDs are written.
    pub text: TextForm,
    /// Whether flake makes IDs in this layout; it reads some formats only.
    pub generates: bool,
    /// Where the layout comes from.
    pub source: Cow<'static, str>,
    pub(crate) geometry: Geometry,
}

impl Layout {
    /// Creates a custom layout. `epoch` is an instant, `tick_length` a number of microseconds; `fields` run from the most
    /// significant bit down.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        epoch: i64,
        tick_length: i64,
        fields: Vec<Field>,
    ) -> Result<Self, Fault> {
        let geometry = Geometry::new(epoch, tick_length, &fields)?;
        let (name, fields, source) = (name.into(), Cow::Owned(fields), Cow::Borrowed("custom"));
        let (text, generates) = (TextForm::Decimal, true);
        Ok(Self { name, epoch, tick_length, fields, text, generates, source, geometry })
    }

    /// The same layout with another text form.
    pub(crate) const fn written(mut self, text: TextForm) -> Self {
        self.text = text;
        self
    }

    /// The same layout for reading only: too little is known of how its IDs are made, or their generator has rules of its own.
    pub(crate) const fn read_only(mut self) -> Self {
        self.generates = false;
        self
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

    /// How it divides time.
    pub const fn ticks(&self) -> Ticks {
        Ticks { epoch: self.epoch, length: self.tick_length, last: self.geometry.last_tick }
    }

    /// The last tick of the layout.
    pub const fn last_tick(&self) -> u64 {
        self.geometry.last_tick
    }

    /// The instant at which a tick of this layout begins.
    pub const fn start_of(&self, tick: u64) -> i64 {
        self.ticks().start_of(tick)
    }

    /// The tick that holds an instant.
    pub fn tick_at(&self, at: i64) -> Result<u64, Error> {
        self.ticks().tick_at(at, &self.name)
    }

    /// The last tick up to which the order of bigint is the order of time, or None if it never is. If the timestamp includes
    /// bit 63, IDs turn negative halfway.
    #[inline]
    pub fn last_ordered_tick(&self) -> Option<u64> {
        let timestamp = self.geometry.timestamp;
        let positive = if timestamp.shift + timestamp.width == 64 { timestamp.max() >> 1 } else { timestamp.max() };
        self.geometry.time_ordered.then(|| positive.min(self.last_tick()))
    }

    /// The ticks up to which the order of bigint is the order of time.
    #[inline]
    pub fn ordered_ticks(&self) -> Result<Ticks, Error> {
        let last = self.last_ordered_tick().ok_or_else(|| Error::NotTimeOrdered { layout: self.name.clone() })?;
        Ok(Ticks { last, ..self.ticks() })
    }

    /// The fields from the most significant bit down.
    pub fn fields(&self) -> &[Field] {
        &self.fields
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

    pub(crate) fn identity(&self) -> impl Hash + PartialEq {
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
    pub fn increases(&self) -> bool {
        let geometry = &self.geometry;
        let counted = geometry.worker.mask() | geometry.sequence.mask();
        let uncounted = geometry.random_mask | geometry.tag.mask();
        let in_order = counted == 0 || uncounted < counted & counted.wrapping_neg();
        geometry.time_ordered && geometry.worker.is_one_run() && in_order
    }

    /// How many integers a program may use for one ID: the ID itself and those that follow, or those that precede. The last field keeps
    /// them free of other IDs if it holds one followed by zeros.
    pub fn block(&self) -> u64 {
        match self.fields.last() {
            Some(&Field { bits, role: Role::Reserved { value }, .. }) if value == 1 << (bits - 1) => value,
            _ => 1,
        }
    }

    /// How many bits the fields take.
    pub const fn width(&self) -> u32 {
        self.geometry.width
    }

    /// How many worker numbers there are: W, from 1 to 2^63.
    pub fn workers(&self) -> u64 {
        1 << self.geometry.worker.width()
    }

    /// How many sequence numbers there are: S, from 1 to 2^63.
    pub const fn sequences(&self) -> u64 {
        1 << self.geometry.sequence.width
    }

    /// How many IDs all workers together can make in a tick: W × S.
    pub fn ids_per_tick(&self) -> u64 {
        1 << (self.geometry.worker.width() + self.geometry.sequence.width)
    }
}

/// Returns how many steps a tick of this length is divided into, if there are IDs enough for one per proc and step.
pub(crate) const fn most_steps(tick_length: i64) -> u64 {
    (tick_length as u64).div_ceil(MAX_STEP_MICROS)
}
