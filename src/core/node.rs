//! Nodes: the servers of a deployment, and which of a layout's workers each of them has.

use crate::{Error, Layout};

/// A server of a deployment: number `id` of `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    id: u32,
    count: u32,
}

/// How many nodes there can be, so that the number of their parts fits into 32 bits.
pub const MOST_NODES: u32 = 1 << 28;

impl Node {
    /// Creates a node. If `id` is not less than `count`, or `count` is above [`MOST_NODES`], returns [`Error::NodeOutOfRange`].
    pub fn new(id: u32, count: u32) -> Result<Self, Error> {
        if id < count && count <= MOST_NODES {
            Ok(Self { id, count })
        } else {
            Err(Error::NodeOutOfRange { id, count })
        }
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

/// `count` consecutive numbers beginning at `first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The lowest number.
    pub first: u64,
    /// How many numbers there are, at least 1.
    pub count: u64,
}
