//! The sources of IDs: what a generator needs to know of a layout, or of a partition of sno.

use std::borrow::Cow;
use std::ops::Deref;

use super::path::Path;
use crate::layout::builtin::{BUILTIN, always_built_in};
use crate::layout::ticks::Ticks;
use crate::{Error, Lanes, Layout, Part, key};

/// The source of a generator's IDs: a layout, or the snos of a partition.
pub trait IdSource: Copy + PartialEq {
    /// The type of its IDs.
    type Id;
    /// The part of an ID that the caller provides: a source of random bits, or a number.
    type Argument: Copy;

    /// The name in error messages.
    fn name(&self) -> Cow<'static, str>;
    /// A number that identifies the generator of this source: equal for sources that share a generator, different for others.
    fn key(&self) -> u64;
    /// Whether it has the bits of a source that every database has.
    fn is_built_in(&self) -> bool;
    /// Whether flake makes IDs of this source.
    fn generates(&self) -> bool;
    /// Whether a generator continues in the past when the clock steps back, with the tick-tock bit toggled.
    fn goes_back(&self) -> bool;
    /// A number that identifies the cursors of its lanes: equal for sources that share cursors.
    fn cursors(&self) -> u64 {
        self.key()
    }
    /// Computes the lanes of a part.
    fn lanes(&self, part: Part) -> Result<Lanes, Error>;
    /// How the source divides time.
    fn ticks(&self) -> Ticks;
    /// The IDs of the lanes in their order.
    fn path(&self, lanes: &Lanes) -> Path;
    /// The bits of an ID that hold the tick. `steps_back` is how often snos have gone back in time.
    fn time_bits(&self, tick: u64, steps_back: u64) -> u64;
    /// Combines the bits of the time, the `bits` of worker and sequence, and the argument into an ID.
    fn id(&self, time_bits: u64, bits: u64, argument: Self::Argument) -> Self::Id;
}

/// Layouts, however they are referred to.
impl<L: Deref<Target = Layout> + Copy + PartialEq> IdSource for L {
    type Id = u64;
    /// Draws random bits, if the layout has some.
    type Argument = fn() -> u64;

    fn name(&self) -> Cow<'static, str> {
        self.name.clone()
    }

    /// Layouts with the same bits make the same IDs, whatever their names, so they have the same key. Built-in ones need no hash.
    fn key(&self) -> u64 {
        match always_built_in().iter().position(|other| self.same_bits(other)) {
            Some(number) => key::of_built_in(number),
            None => key::of_layout(&self.identity()),
        }
    }

    fn is_built_in(&self) -> bool {
        BUILTIN.iter().any(|other| self.same_bits(other))
    }

    fn generates(&self) -> bool {
        self.generates
    }

    fn goes_back(&self) -> bool {
        false
    }

    fn lanes(&self, part: Part) -> Result<Lanes, Error> {
        Lanes::new(self, part)
    }

    fn ticks(&self) -> Ticks {
        Layout::ticks(self)
    }

    fn path(&self, lanes: &Lanes) -> Path {
        Path::new(self.geometry.worker, lanes.workers, self.geometry.sequence, lanes.sequences)
    }

    fn time_bits(&self, tick: u64, _steps_back: u64) -> u64 {
        self.geometry.time_bits(tick)
    }

    #[inline]
    fn id(&self, time_bits: u64, bits: u64, random: fn() -> u64) -> u64 {
        let mask = self.geometry.random_mask;
        time_bits | bits | if mask == 0 { 0 } else { random() & mask }
    }
}
