//! The marks of all nodes, as a database keeps them in one page of its own.
//!
//! The page travels in the WAL with the data: whoever has replayed a commit has replayed marks above the IDs in it.

use crate::Node;

/// How many nodes are listed. When there is no room for another, the lowest mark counts for all nodes that are not listed.
const MAX_LISTED: usize = 400;
const MAGIC: u32 = 0x464c_4d31;

/// One node's mark.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    node_id: u32,
    node_count: u32,
    instant: i64,
}

/// The marks of a database. They consist of plain numbers, so that they can lie in a page.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    magic: u32,
    count: u32,
    /// The mark of every node that is not listed.
    unlisted: i64,
    listed: [Mark; MAX_LISTED],
}

/// What the marks say of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownMark {
    /// IDs that could be this node's reach no further than this instant.
    pub instant: i64,
    /// Whether a server with this node's number, or with another division of the workers, has made IDs here.
    pub is_listed: bool,
}

impl Marks {
    /// Creates marks that list no node. `unlisted` counts for all of them.
    pub fn new(unlisted: Option<i64>) -> Self {
        let none = Mark { node_id: 0, node_count: 0, instant: i64::MIN };
        Self { magic: MAGIC, count: 0, unlisted: unlisted.unwrap_or(i64::MIN), listed: [none; MAX_LISTED] }
    }

    /// Returns whether a page holds marks and not something else.
    pub const fn is_valid(&self) -> bool {
        self.magic == MAGIC && self.count as usize <= MAX_LISTED
    }

    fn listed(&self) -> &[Mark] {
        &self.listed[..self.count as usize]
    }

    /// Returns what is known of a node, if anything is. Marks made under another number of nodes count for every node,
    /// because any of the workers may have been this node's.
    pub fn of(&self, node: Node) -> Option<KnownMark> {
        let counting = |mark: &&Mark| mark.node_count != node.count() || mark.node_id == node.id();
        let listed = self.listed().iter().filter(counting).map(|mark| mark.instant).max();
        let unlisted = if self.own(node).is_some() { i64::MIN } else { self.unlisted };
        let instant = listed.unwrap_or(i64::MIN).max(unlisted);
        (instant > i64::MIN).then_some(KnownMark { instant, is_listed: listed.is_some() })
    }

    /// Returns the mark that was raised for a node itself.
    pub fn own(&self, node: Node) -> Option<i64> {
        let is_own = |mark: &&Mark| (mark.node_id, mark.node_count) == (node.id(), node.count());
        self.listed().iter().find(is_own).map(|mark| mark.instant)
    }

    /// Returns the greatest mark of all nodes.
    pub fn greatest(&self) -> i64 {
        self.listed().iter().map(|mark| mark.instant).max().unwrap_or(i64::MIN).max(self.unlisted)
    }

    /// Raises the mark of a node to an instant; it never lowers one. Returns whether anything has changed.
    pub fn raise(&mut self, node: Node, instant: i64) -> bool {
        let (node_id, node_count) = (node.id(), node.count());
        let is_own = |mark: &Mark| (mark.node_id, mark.node_count) == (node_id, node_count);
        if let Some(index) = self.listed().iter().position(is_own) {
            let mark = &mut self.listed[index];
            let is_higher = instant > mark.instant;
            mark.instant = mark.instant.max(instant);
            return is_higher;
        }
        // What counted for all nodes that are not listed goes on counting for this one.
        let new = Mark { node_id, node_count, instant: instant.max(self.unlisted) };
        if self.listed().len() < MAX_LISTED {
            self.listed[self.count as usize] = new;
            self.count += 1;
        } else if let Some(lowest) = self.listed.iter_mut().min_by_key(|mark| mark.instant) {
            // No listed node loses anything: its own mark is at least as high.
            self.unlisted = self.unlisted.max(lowest.instant);
            *lowest = new;
        }
        true
    }
}
