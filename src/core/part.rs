//! Parts: which of a node's IDs its server makes now.
//!
//! The node's IDs are divided into eight equal parts. The [turn](crate::turn), from 0 to 3, says which of the first four is in force;
//! nobody makes IDs of the others. A layout without workers, out of the order of time, or with ticks of more than a second has four
//! parts only.

use crate::turn::TURNS;
use crate::{Error, Layout, Node, Numbers};

/// How many parts a node has. The first [`TURNS`] are in use.
pub const PARTS: u32 = 2 * TURNS;

/// A part of a node's IDs, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    node: Node,
    /// None for all IDs of the node.
    number: Option<u32>,
}

impl Part {
    /// All IDs of a node, for programs that divide them by other means.
    pub const fn whole(node: Node) -> Self {
        Self { node, number: None }
    }

    /// The part of a node in a turn.
    pub const fn in_turn(node: Node, turn: u32) -> Self {
        Self { node, number: Some(turn % TURNS) }
    }

    /// The part with a number among all parts of all nodes.
    pub(crate) fn numbered((number, count): (u32, u32)) -> Self {
        Self { node: Node::numbered(number / PARTS, count / PARTS), number: Some(number % PARTS) }
    }

    /// The node.
    pub const fn node(self) -> Node {
        self.node
    }

    /// The number of the part among all parts of all nodes, and how many there are.
    pub fn number(self) -> (u32, u32) {
        (self.node.id() * PARTS + self.number.unwrap_or(0), self.node.count() * PARTS)
    }

    /// The turn.
    pub const fn turn(self) -> u32 {
        match self.number {
            Some(number) => number % TURNS,
            None => 0,
        }
    }

    /// Returns this part's workers and sequence numbers in a layout.
    ///
    /// # Errors
    /// [`Error::TooManyNodes`] if there are fewer workers than nodes, [`Error::TooFewIds`] if the node has fewer IDs in a tick than
    /// parts.
    pub fn numbers(self, layout: &Layout) -> Result<(Numbers, Numbers), Error> {
        let (workers, sequences) = (self.node.workers(layout)?, Numbers { first: 0, count: layout.sequences() });
        let parts = if layout.has_eight_parts() { PARTS } else { TURNS };
        self.of(workers, sequences, parts).ok_or_else(|| Error::TooFewIds {
            layout: layout.name.clone(),
            workers: workers.count,
            sequences: sequences.count,
            parts,
        })
    }

    /// Returns this part's workers and sequence numbers of the node's, if they are divided into `parts`. Returns None if there are too few.
    ///
    /// The workers are divided if there are enough. Otherwise the sequence numbers are, as far as they go, and then the workers.
    pub(crate) fn of(self, workers: Numbers, sequences: Numbers, parts: u32) -> Option<(Numbers, Numbers)> {
        if workers.count == 0 || sequences.count == 0 {
            return None;
        }
        let Some(number) = self.number else { return Some((workers, sequences)) };
        let (number, parts) = (u64::from(number), u64::from(parts));
        let of_sequence = if workers.count >= parts { 1 } else { power_of_two(sequences.count.min(parts)) };
        let of_workers = parts / of_sequence;
        let slice = |numbers: Numbers, of: u64, which: u64| {
            let count = numbers.count / of;
            (count > 0).then(|| Numbers { first: numbers.first + which * count, count })
        };
        Some((slice(workers, of_workers, number / of_sequence)?, slice(sequences, of_sequence, number % of_sequence)?))
    }
}

/// The greatest power of two that is not above a number.
pub(crate) const fn power_of_two(most: u64) -> u64 {
    if most == 0 { 0 } else { 1 << most.ilog2() }
}
