//! Shares: which part of every tick's (worker × sequence) space belongs to one slot of one node.

use crate::{Error, Layout};

/// One server of a deployment: number `id` of `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    id: u32,
    count: u32,
}

impl Node {
    /// A node with `id < count`, else [`Error::NodeOutOfRange`].
    pub fn new(id: u32, count: u32) -> Result<Self, Error> {
        if id < count { Ok(Self { id, count }) } else { Err(Error::NodeOutOfRange { id, count }) }
    }
}

/// One of the places for a session in a server: number `number` of `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    number: u32,
    count: u32,
}

impl Slot {
    /// A slot with `number < count`, else [`Error::SlotOutOfRange`].
    pub fn new(number: u32, count: u32) -> Result<Self, Error> {
        if number < count { Ok(Self { number, count }) } else { Err(Error::SlotOutOfRange { number, count }) }
    }
}

/// The equal part that one of several sharers has of a sequence.
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
    /// The lowest of them.
    pub first: u64,
    /// How many, at least 1.
    pub count: u64,
}

/// The part of every tick that one slot owns: some workers, each with some sequence numbers.
///
/// Shares of different slots or nodes never overlap: uniqueness between sessions that live at the same time is
/// arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Worker numbers.
    pub workers: Numbers,
    /// Sequence numbers that each of the workers has.
    pub sequences: Numbers,
}

impl Share {
    /// The share of a slot of a node.
    ///
    /// The node takes an equal part of the workers. With enough of them for every slot, the slot gets whole workers;
    /// otherwise several slots share a worker and divide its sequence. The result depends on the configuration alone.
    ///
    /// # Errors
    /// [`Error::TooManyNodes`] when there is no worker for each node, [`Error::EmptyShare`] when the sequence is too
    /// short for the slots that would have to share it.
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

    /// The share of a slot in a worker that all slots of all nodes use: an equal part of its sequence.
    pub(crate) fn of_worker(layout: &str, worker: u64, sequences: u64, node: Node, slot: Slot) -> Result<Self, Error> {
        let slots = u64::from(slot.count);
        let number = u64::from(node.id) * slots + u64::from(slot.number);
        let sequences = part(layout, 1, sequences, number, u64::from(node.count) * slots)?;
        Ok(Self { workers: Numbers { first: worker, count: 1 }, sequences })
    }

    /// How many IDs the slot can make in one tick, at least 1.
    pub const fn size(&self) -> u64 {
        self.workers.count * self.sequences.count
    }
}
