//! Shares: the part of each tick's (worker × sequence) space that belongs to one slot of one node.
//!
//! The number of nodes alone decides which part is a node's, and the node's slots divide it. A share extends over the whole tick:
//! the node's IDs of a tick, in order, are divided into equal *steps* of time, and each step is divided among the slots. So the IDs
//! of all sessions are in the order of time down to a step instead of a tick, and neighbors in time are neighbors in an index.

use crate::layout::most_steps;
use crate::{Error, Layout};

/// The number of the rule that computes shares. Sessions of one server that follow different rules could make the same IDs. So a
/// released rule never changes, and another rule gets another number.
pub const SHARE_RULE: u32 = 2;

/// A server of a deployment: number `id` of `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    id: u32,
    count: u32,
}

impl Node {
    /// Creates a node. If `id` is not less than `count`, returns [`Error::NodeOutOfRange`].
    pub fn new(id: u32, count: u32) -> Result<Self, Error> {
        if id < count { Ok(Self { id, count }) } else { Err(Error::NodeOutOfRange { id, count }) }
    }

    /// Its number.
    pub const fn id(self) -> u32 {
        self.id
    }

    /// How many nodes there are.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Returns the node's workers in a layout.
    ///
    /// # Errors
    /// [`Error::TooManyNodes`] if there are fewer workers than nodes.
    pub fn workers(self, layout: &Layout) -> Result<Numbers, Error> {
        self.part_of(layout.workers()).ok_or_else(|| Error::TooManyNodes {
            layout: layout.name.clone(),
            workers: layout.workers(),
            nodes: self.count,
        })
    }

    /// Returns the node's part of the numbers below `all`, or None if there are fewer numbers than nodes.
    pub(crate) fn part_of(self, all: u64) -> Option<Numbers> {
        let count = all / u64::from(self.count);
        (count > 0).then(|| Numbers { first: u64::from(self.id) * count, count })
    }

    /// Returns which node's part contains a number below `all`, or None if the number is left over. The inverse of
    /// [`Self::part_of`].
    pub(crate) fn holder_of(self, number: u64, all: u64) -> Option<u32> {
        let id = number / self.part_of(all)?.count;
        (id < u64::from(self.count)).then_some(id as u32)
    }
}

/// PostgreSQL's number of a server process: number `number` of `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    number: u32,
    count: u32,
}

impl Slot {
    /// Creates a slot. If `number` is not less than `count`, returns [`Error::SlotOutOfRange`].
    pub fn new(number: u32, count: u32) -> Result<Self, Error> {
        if number < count { Ok(Self { number, count }) } else { Err(Error::SlotOutOfRange { number, count }) }
    }
}

/// `count` consecutive numbers beginning at `first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The lowest number.
    pub first: u64,
    /// How many numbers there are, at least 1.
    pub count: u64,
}

/// The part of each tick that one slot owns. Its IDs have *positions*, from 0 to `size() - 1`.
///
/// Shares of different slots or nodes never overlap, so sessions that live at the same time cannot make the same ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The node's workers.
    pub workers: Numbers,
    /// The node's sequence numbers, for each of these workers.
    pub sequences: Numbers,
    /// How many steps a tick has.
    pub steps: u64,
    /// How many IDs of a step belong to the slot.
    pub ids_per_step: u64,
    slot: Slot,
}

impl Share {
    /// Computes the share of a slot of a node.
    ///
    /// Each node has an equal part of the workers. Only the configuration decides this, never the load.
    ///
    /// # Errors
    /// [`Error::TooManyNodes`] if there are fewer workers than nodes, [`Error::EmptyShare`] if the node has fewer IDs in a tick
    /// than slots.
    pub fn new(layout: &Layout, node: Node, slot: Slot) -> Result<Self, Error> {
        let workers = node.workers(layout)?;
        // If IDs are not in the order of time, steps would not order them either.
        let steps = if layout.geometry.time_ordered { most_steps(layout.tick_length) } else { 1 };
        Self::of(&layout.name, workers, Numbers { first: 0, count: layout.sequences() }, slot, steps)
    }

    /// Computes the share of a slot in some workers and sequence numbers of a node. It has `steps` steps or more if there are
    /// enough IDs.
    ///
    /// # Errors
    /// [`Error::EmptyShare`], as above.
    pub fn of(layout: &str, workers: Numbers, sequences: Numbers, slot: Slot, steps: u64) -> Result<Self, Error> {
        let ids = workers.count * sequences.count;
        let slots = u64::from(slot.count);
        if ids < slots {
            let (layout, workers, sequences) = (layout.to_owned().into(), workers.count, sequences.count);
            return Err(Error::EmptyShare { layout, workers, sequences, slots });
        }
        let ids_per_step = (ids / slots.saturating_mul(steps)).max(1);
        Ok(Self { workers, sequences, steps: ids / (slots * ids_per_step), ids_per_step, slot })
    }

    /// How many IDs the slot can make in a tick, at least 1.
    pub const fn size(&self) -> u64 {
        self.steps * self.ids_per_step
    }

    /// How many IDs the slot can make in a second with ticks of this many microseconds.
    pub const fn ids_per_second(&self, tick_length: i64) -> u128 {
        self.size() as u128 * 1_000_000 / tick_length as u128
    }

    /// Returns the number of a position's ID among all IDs that the node can make in a tick, and how many more of the slot's IDs
    /// follow it directly.
    pub fn number_at(&self, position: u64) -> (u64, u64) {
        let (step, within) = (position / self.ids_per_step, position % self.ids_per_step);
        let (slot, slots) = (u64::from(self.slot.number), u64::from(self.slot.count));
        let number = (step * slots + slot) * self.ids_per_step + within;
        (number, self.ids_per_step - within - 1)
    }
}
