//! The marks of all nodes, as a database keeps them in one page of its own.
//!
//! The page travels in the WAL with the data: whoever has replayed a commit has replayed marks above the IDs in it.

use crate::{Node, absent};

/// How many nodes are listed. When there is no room for another, the lowest mark counts for all nodes that are not listed.
const MAX_LISTED: usize = 300;
const MAGIC: u32 = 0x464c_4d31;

/// One node's mark.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    node_id: u32,
    node_count: u32,
    instant: i64,
    /// The memory that wrote it.
    memory: u32,
    unused: u32,
}

/// The marks of a database. They consist of plain numbers, so that they can lie in a page.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    magic: u32,
    count: u32,
    /// The mark of every node that is not listed.
    unlisted: i64,
    /// No node makes IDs before this instant, because horizons may have been announced up to there, and the memory that
    /// wrote it.
    binding: i64,
    binding_memory: u32,
    unused: u32,
    listed: [Mark; MAX_LISTED],
}

/// What the marks say of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownMark {
    /// The mark that was raised for the node itself, and the memory that did so.
    pub own: Option<(i64, u32)>,
    /// What else counts for the node: marks made under another number of nodes, as any of the workers may have been this
    /// node's, and that of all nodes that are not listed. [`i64::MIN`] if there is none.
    pub inherited: i64,
    /// The instant that binds every node because of horizons, and the memory that wrote it.
    pub binding: Option<(i64, u32)>,
    /// Whether a server with this node's number, or with another number of nodes, has made IDs here.
    pub is_listed: bool,
    /// The greatest mark that was raised for another node; [`i64::MIN`] if there is none.
    pub of_others: i64,
}

impl Marks {
    /// Creates marks that list no node. `unlisted` counts for all of them.
    pub fn new(unlisted: Option<i64>) -> Self {
        let none = Mark { node_id: 0, node_count: 0, instant: i64::MIN, memory: 0, unused: 0 };
        let unlisted = unlisted.unwrap_or(i64::MIN);
        Self {
            magic: MAGIC,
            count: 0,
            unlisted,
            binding: i64::MIN,
            binding_memory: 0,
            unused: 0,
            listed: [none; MAX_LISTED],
        }
    }

    /// Returns whether a page holds marks and not something else.
    pub const fn is_valid(&self) -> bool {
        self.magic == MAGIC && self.count as usize <= MAX_LISTED
    }

    fn listed(&self) -> &[Mark] {
        &self.listed[..self.count as usize]
    }

    fn find(&self, node: Node) -> Option<usize> {
        self.listed().iter().position(|mark| (mark.node_id, mark.node_count) == (node.id(), node.count()))
    }

    /// Returns what is known of a node.
    pub fn of(&self, node: Node) -> KnownMark {
        let greatest = |wanted: &dyn Fn(&Mark) -> bool| {
            self.listed().iter().filter(|mark| wanted(mark)).map(|mark| mark.instant).max().unwrap_or(i64::MIN)
        };
        let own = self.find(node).map(|index| (self.listed[index].instant, self.listed[index].memory));
        let of_other_counts = greatest(&|mark| mark.node_count != node.count() && !absent!(MarkCount));
        KnownMark {
            own,
            inherited: if own.is_some() || absent!(MarkUnlisted) {
                of_other_counts
            } else {
                of_other_counts.max(self.unlisted)
            },
            binding: (self.binding > i64::MIN && !absent!(HorizonBinding))
                .then_some((self.binding, self.binding_memory)),
            is_listed: own.is_some() || of_other_counts > i64::MIN,
            of_others: greatest(&|mark| (mark.node_id, mark.node_count) != (node.id(), node.count()))
                .max(self.unlisted),
        }
    }

    /// Returns the mark that was raised for a node itself.
    pub fn own(&self, node: Node) -> Option<i64> {
        self.find(node).map(|index| self.listed[index].instant)
    }

    /// Returns the greatest mark of all nodes.
    pub fn greatest(&self) -> i64 {
        self.listed().iter().map(|mark| mark.instant).max().unwrap_or(i64::MIN).max(self.unlisted)
    }

    /// Returns the instant that binds every node.
    pub const fn binding(&self) -> i64 {
        self.binding
    }

    /// Raises the instant that binds every node; it never lowers it. Returns whether anything has changed.
    pub const fn bind(&mut self, instant: i64, memory: u32) -> bool {
        let is_higher = instant > self.binding;
        if is_higher {
            (self.binding, self.binding_memory) = (instant, memory);
        }
        is_higher
    }

    /// Raises the mark of a node to an instant; it never lowers one. `memory` is the number of the ledger's memory, or 0.
    /// Returns whether anything has changed.
    pub fn raise(&mut self, node: Node, instant: i64, memory: u32) -> bool {
        if let Some(index) = self.find(node) {
            let mark = &mut self.listed[index];
            let is_higher = instant > mark.instant || absent!(MarkLowered);
            if is_higher {
                (mark.instant, mark.memory) = (instant, memory);
            }
            return is_higher;
        }
        // What counted for all nodes that are not listed goes on counting for this one.
        let instant = if absent!(MarkGoesOn) { instant } else { instant.max(self.unlisted) };
        let new = Mark { node_id: node.id(), node_count: node.count(), instant, memory, unused: 0 };
        if self.listed().len() < MAX_LISTED {
            self.listed[self.count as usize] = new;
            self.count += 1;
        } else if let Some(lowest) = self.listed.iter_mut().min_by_key(|mark| mark.instant) {
            // No listed node loses anything: its own mark is at least as high.
            if !absent!(MarkFull) {
                self.unlisted = self.unlisted.max(lowest.instant);
            }
            *lowest = new;
        }
        true
    }
}
