//! Marks: how much time each node has used, as the file of a server and a page of each database keep it.
//!
//! A session that writes one writes the union of what is there and what it knows, so nothing that was used is forgotten.

use super::used::Used;
use crate::share::Node;

/// How many nodes are listed. When there is no room for another, the lowest marks count for every node.
pub const MAX_MARKS: usize = 150;
/// How many published horizons a page keeps.
pub const MAX_PUBLISHED: usize = 12;
/// How much later a server may have gone on than another one has heard, in microseconds.
pub const MARGIN: i64 = 2_000_000;

/// In whose name a mark is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer {
    /// The number of the node, and the number of nodes.
    pub node: (u32, u32),
    /// A chance number: a server between a promotion, or the loss of its file, and the next.
    pub incarnation: u32,
    /// A chance number of the server's start; 0 if it is not known.
    pub start: u32,
}

/// The time that a node has used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// In whose name.
    pub by: Writer,
    /// The time.
    pub used: Used,
}

/// Up to where horizons may have been announced. It binds every node but the one that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// How often horizons were taken back: what was announced before does not count.
    pub recalls: u32,
    /// The instant; [`i64::MIN`] before the first horizon.
    pub instant: i64,
    /// The incarnation that announces.
    pub incarnation: u32,
}

impl Bound {
    /// Nothing was announced.
    pub const NONE: Self = Self { recalls: 0, instant: i64::MIN, incarnation: 0 };

    /// Returns whichever counts.
    #[must_use]
    pub const fn united(self, other: Self) -> Self {
        let other_counts =
            other.recalls > self.recalls || other.recalls == self.recalls && other.instant > self.instant;
        if other_counts { other } else { self }
    }
}

/// A horizon of the primary, for the snapshots of standbys. Only pages have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// The instant.
    pub horizon: i64,
    /// A number that no transaction had when the horizon's snapshot had been taken.
    pub next: u64,
}

/// The content of a file or a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    pub(super) listed: Vec<Mark>,
    /// Counts for every node.
    pub(super) folded: Option<Used>,
    /// Horizons.
    pub bound: Bound,
    /// Horizons for standbys, the latest last.
    pub published: Vec<Published>,
    /// Bytes that a later version keeps in the room for it.
    pub(super) room: [u8; super::block::ROOM],
}

impl Default for Marks {
    fn default() -> Self {
        let room = [0; super::block::ROOM];
        Self { listed: Vec::new(), folded: None, bound: Bound::NONE, published: Vec::new(), room }
    }
}

/// The part of marks that concerns a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concern {
    /// The time that it has to count as used.
    pub used: Used,
    /// Whether another incarnation has used any of it, which may go on for [`MARGIN`].
    pub is_of_another: bool,
}

impl Marks {
    /// Marks that count for every node.
    pub fn of_all(used: Used) -> Self {
        Self { folded: Some(used), ..Self::default() }
    }

    /// The marks of nodes.
    pub fn listed(&self) -> &[Mark] {
        &self.listed
    }

    /// Returns the mark of a node.
    pub fn of(&self, node: (u32, u32)) -> Option<&Mark> {
        self.listed.iter().find(|mark| mark.by.node == node)
    }

    /// Returns the end of all time that any node has used.
    pub fn until(&self) -> i64 {
        self.listed.iter().map(|mark| &mark.used).chain(&self.folded).map(Used::until).max().unwrap_or(i64::MIN)
    }

    /// The instant that the sequence's last value repeats: after pg_upgrade, it is all that says of horizons.
    pub fn last_value(&self) -> i64 {
        self.until().max(self.bound.instant)
    }

    /// Returns what these marks say to a server: its own node's mark, those under another number of nodes, as any worker may have
    /// been this node's, and what is folded. `given_back` is the start whose exit note the server continues from, and all that its
    /// file knew of it.
    pub fn concern(&self, me: Writer, given_back: &(u32, Used)) -> Concern {
        let mut concern = Concern { used: Used::NONE, is_of_another: false };
        let is_known = |start: u32, used: &Used| {
            start != 0 && (start == me.start || start == given_back.0 && given_back.1.contains(used))
        };
        for Mark { by, used } in &self.listed {
            let is_own = by.node == me.node;
            if !is_own && by.node.1 == me.node.1 {
                continue;
            }
            if by.incarnation != me.incarnation {
                concern.used = concern.used.united(&used.later(MARGIN), i64::MIN);
                concern.is_of_another = true;
            } else if !(is_own && is_known(by.start, used)) {
                concern.used = concern.used.united(used, i64::MIN);
            }
        }
        if let Some(folded) = &self.folded {
            concern.used = concern.used.united(&folded.later(MARGIN), i64::MIN);
            concern.is_of_another = true;
        }
        concern
    }

    /// Adds what is known from elsewhere of all nodes but one.
    pub fn unite(&mut self, other: &Self, except: (u32, u32)) {
        for mark in other.listed.iter().filter(|mark| mark.by.node != except) {
            match self.listed.iter_mut().find(|known| known.by.node == mark.by.node) {
                None => self.listed.push(mark.clone()),
                Some(known) => known.unite(mark),
            }
        }
        if let Some(folded) = &other.folded {
            self.fold_in(*folded);
        }
        self.bind(other.bound);
        self.fold(except);
    }

    /// Adds up to where horizons bind servers. Horizons that were published before a recall do not count.
    pub fn bind(&mut self, bound: Bound) {
        if bound.recalls > self.bound.recalls {
            self.published.clear();
        }
        self.bound = self.bound.united(bound);
    }

    /// Replaces a node's own mark. The caller has taken in what was there.
    pub fn set(&mut self, mark: Mark) {
        let node = mark.by.node;
        self.listed.retain(|known| known.by.node != node);
        self.listed.push(mark);
        self.fold(node);
    }

    /// Says in whose name a node's mark is, if it is listed.
    pub fn rename(&mut self, by: Writer) {
        if let Some(mark) = self.listed.iter_mut().find(|mark| mark.by.node == by.node) {
            mark.by = by;
        }
    }

    /// Folds the lowest marks where there are too many.
    fn fold(&mut self, except: (u32, u32)) {
        while self.listed.len() > MAX_MARKS {
            let others = (0..self.listed.len()).filter(|&at| self.listed[at].by.node != except);
            let Some(lowest) = others.min_by_key(|&at| self.listed[at].used.until()) else { return };
            let used = self.listed.remove(lowest).used;
            self.fold_in(used);
        }
    }

    fn fold_in(&mut self, used: Used) {
        self.folded = Some(self.folded.map_or(used, |folded| folded.united(&used, i64::MIN)));
    }
}

impl Mark {
    /// Adds what another copy of the mark says. Of two starts nobody knows which one the union belongs to; of two incarnations
    /// the one that came further names it, and the other may have gone on.
    fn unite(&mut self, other: &Self) {
        let same_incarnation = self.by.incarnation == other.by.incarnation;
        if same_incarnation {
            self.used = self.used.united(&other.used, i64::MIN);
        } else if other.used.until() > self.used.until() {
            self.used = self.used.later(MARGIN).united(&other.used, i64::MIN);
            self.by.incarnation = other.by.incarnation;
        } else {
            self.used = self.used.united(&other.used.later(MARGIN), i64::MIN);
        }
        if !same_incarnation || self.by.start != other.by.start {
            self.by.start = 0;
        }
    }
}

impl From<Node> for (u32, u32) {
    fn from(node: Node) -> Self {
        (node.id(), node.count())
    }
}
