//! Shares: the part of each tick's (worker × sequence) space that belongs to one slot of one node.

use crate::{Error, Layout};

/// The number of the rule by which shares are computed. Sessions of one server that follow different rules could make the
/// same IDs, so a released rule never changes: another rule gets another number.
pub const SHARE_RULE: u32 = 1;

/// One server of a deployment: number `id` of `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    id: u32,
    count: u32,
}

impl Node {
    /// Creates a node. `id` has to be less than `count`, else [`Error::NodeOutOfRange`].
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
}

/// PostgreSQL's number of a server process: number `number` of `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    number: u32,
    count: u32,
}

impl Slot {
    /// Creates a slot. `number` has to be less than `count`, else [`Error::SlotOutOfRange`].
    pub fn new(number: u32, count: u32) -> Result<Self, Error> {
        if number < count { Ok(Self { number, count }) } else { Err(Error::SlotOutOfRange { number, count }) }
    }
}

/// Divides a sequence equally and returns the part of one of the sharers.
fn part(layout: &str, workers: u64, sequences: u64, number: u64, sharers: u64) -> Result<Numbers, Error> {
    let count = sequences / sharers;
    if count == 0 {
        return Err(Error::EmptyShare { layout: layout.to_owned().into(), workers, sequences, sharers });
    }
    Ok(Numbers { first: number * count, count })
}

/// `count` consecutive numbers beginning at `first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The lowest number.
    pub first: u64,
    /// How many numbers there are, at least 1.
    pub count: u64,
}

/// The part of each tick that one slot owns: a range of workers, and a range of sequence numbers for each of them.
///
/// Shares of different slots or nodes never overlap, so sessions that live at the same time cannot make the same ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The worker numbers.
    pub workers: Numbers,
    /// The sequence numbers of each of these workers.
    pub sequences: Numbers,
}

impl Share {
    /// Computes the share of a slot of a node.
    ///
    /// Each node has an equal part of the workers. If there are enough workers for all slots, each slot has whole
    /// workers; otherwise several slots divide the sequence of one worker. Only the configuration decides.
    ///
    /// # Errors
    /// [`Error::TooManyNodes`] when there are fewer workers than nodes, [`Error::EmptyShare`] when a sequence is too short
    /// for the slots that have to divide it.
    pub fn new(layout: &Layout, node: Node, slot: Slot) -> Result<Self, Error> {
        Self::divide(&layout.name, layout.workers(), layout.sequences(), node, slot)
    }

    pub(crate) fn divide(layout: &str, workers: u64, sequences: u64, node: Node, slot: Slot) -> Result<Self, Error> {
        let (node_count, slots) = (u64::from(node.count), u64::from(slot.count));
        let of_node = workers / node_count;
        if of_node == 0 {
            return Err(Error::TooManyNodes { layout: layout.to_owned().into(), workers, nodes: node.count });
        }
        let base = u64::from(node.id) * of_node;
        let number = u64::from(slot.number);
        if of_node >= slots {
            let count = of_node / slots;
            let workers = Numbers { first: base + number * count, count };
            return Ok(Self { workers, sequences: Numbers { first: 0, count: sequences } });
        }
        let sharers = slots.div_ceil(of_node);
        Ok(Self {
            workers: Numbers { first: base + number % of_node, count: 1 },
            sequences: part(layout, of_node, sequences, number / of_node, sharers)?,
        })
    }

    /// Computes the share of a slot in a worker that all slots of all nodes use: an equal part of its sequence.
    pub(crate) fn of_worker(layout: &str, worker: u64, sequences: u64, node: Node, slot: Slot) -> Result<Self, Error> {
        let slots = u64::from(slot.count);
        let number = u64::from(node.id) * slots + u64::from(slot.number);
        let sequences = part(layout, 1, sequences, number, u64::from(node.count) * slots)?;
        Ok(Self { workers: Numbers { first: worker, count: 1 }, sequences })
    }

    /// How many IDs the slot can make in a tick, at least 1.
    pub const fn size(&self) -> u64 {
        self.workers.count * self.sequences.count
    }
}
