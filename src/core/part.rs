//! Parts: which of a node's IDs its server makes now.
//!
//! The node's IDs are divided into eight equal parts: four for the [turns](crate::turn), in each of two *generations*. The generation
//! changes when a superuser accepts a clock that was set back, so IDs of the same time can be made once more.

use crate::turn::TURNS;
use crate::{Error, Layout, Node, Numbers};

/// How many parts a node has.
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

    /// The part of a node in a turn and a generation, 0 or 1.
    pub const fn in_turn(node: Node, turn: u32, generation: u32) -> Self {
        Self { node, number: Some(turn % TURNS + TURNS * (generation & 1)) }
    }

    /// The node.
    pub const fn node(self) -> Node {
        self.node
    }

    /// The turn.
    pub const fn turn(self) -> u32 {
        match self.number {
            Some(number) => number % TURNS,
            None => 0,
        }
    }

    /// The generation, 0 or 1.
    pub const fn generation(self) -> u32 {
        match self.number {
            Some(number) => number / TURNS,
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
        self.of(workers, sequences, &layout.name)
    }

    /// Returns this part's workers and sequence numbers of the node's. `layout` is the name in the error.
    ///
    /// The workers are divided if there are enough. Otherwise the sequence numbers are, as far as they go, and then the workers.
    ///
    /// # Errors
    /// [`Error::TooFewIds`] if there are fewer IDs than parts.
    pub(crate) fn of(self, workers: Numbers, sequences: Numbers, layout: &str) -> Result<(Numbers, Numbers), Error> {
        let Some(number) = self.number else { return Ok((workers, sequences)) };
        let (number, parts) = (u64::from(number), u64::from(PARTS));
        let too_few = || Error::TooFewIds {
            layout: layout.to_owned().into(),
            workers: workers.count,
            sequences: sequences.count,
            parts: PARTS,
        };
        if sequences.count == 0 {
            return Err(too_few());
        }
        let of_sequence = if workers.count >= parts { 1 } else { power_of_two(sequences.count.min(parts)) };
        let slice = |numbers: Numbers, of: u64, which: u64| {
            let count = numbers.count / of;
            (count > 0).then(|| Numbers { first: numbers.first + which * count, count }).ok_or_else(too_few)
        };
        let of_part = slice(workers, parts / of_sequence, number / of_sequence)?;
        let sequences_of_part = slice(sequences, of_sequence, number % of_sequence)?;
        debug_assert!(
            [(of_part, workers), (sequences_of_part, sequences)]
                .iter()
                .all(|(part, all)| part.first >= all.first && part.first + part.count <= all.first + all.count),
            "a part lies in its node"
        );
        Ok((of_part, sequences_of_part))
    }
}

/// The greatest power of two that is not above a number.
pub(crate) const fn power_of_two(most: u64) -> u64 {
    if most == 0 { 0 } else { 1 << most.ilog2() }
}
