//! Marks: how much time each node has used, as the file of a server and a page of each database keep it.
//!
//! A session that writes one writes the union of what is there and what it knows, so nothing that was used is forgotten. What is
//! written has no margins: whoever reads it adds one.

use super::bound::Bound;
use super::used::Used;
use crate::share::Node;

/// How many nodes are listed. When there is no room for another, the lowest marks count for every node.
pub const MAX_MARKS: usize = 150;
/// How many published horizons a page keeps.
pub const MAX_PUBLISHED: usize = 12;
/// Bytes that later versions may use.
pub const ROOM: usize = 192;
/// How much later a server may have gone on than another one has heard, in microseconds.
pub const MARGIN: i64 = 2_000_000;

/// In whose name a mark is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Author {
    /// The number of the node, and the number of nodes.
    pub node: (u32, u32),
    /// A chance number: a server between a promotion, or the loss of its file, and the next.
    pub incarnation: u32,
    /// A chance number of the server's start; 0 if it is not known.
    pub start: u32,
}

/// The time that an incarnation has used, and what others had used before it. They are kept apart, because the last IDs of others
/// may not have come across, and those of its own have.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Its own.
    pub own: Used,
    /// Of others, as they have said it: without a margin.
    pub inherited: Used,
}

impl Times {
    /// Nothing is used.
    pub const NONE: Self = Self { own: Used::NONE, inherited: Used::NONE };

    /// Time of its own.
    pub const fn own(own: Used) -> Self {
        Self { own, ..Self::NONE }
    }

    /// Returns what is used as the incarnation itself sees it: a margin is added to what others have said, however many of them
    /// there were.
    pub fn used(&self, present: i64) -> Used {
        self.own.united(&self.inherited.later(MARGIN), present)
    }

    /// Returns what another incarnation inherits.
    pub fn all(&self) -> Used {
        self.own.united(&self.inherited, i64::MIN)
    }

    /// Returns the union.
    #[must_use]
    pub fn united(&self, other: &Self, present: i64) -> Self {
        Self { own: self.own.united(&other.own, present), inherited: self.inherited.united(&other.inherited, present) }
    }

    /// Returns whether everything is used here that is used there.
    pub fn contains(&self, other: &Self) -> bool {
        self.own.contains(&other.own) && self.inherited.contains(&other.inherited)
    }

    /// Adds what another incarnation has used.
    fn inherit(&mut self, other: &Used) {
        self.inherited = self.inherited.united(other, i64::MIN);
    }

    fn until(&self) -> i64 {
        self.own.until().max(self.inherited.until())
    }
}

/// The time that a node has used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// In whose name.
    pub by: Author,
    /// The time.
    pub times: Times,
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
    /// What flake_start_above was told of the data: no node that goes on with it makes an ID in a tick that begins before.
    pub above: i64,
    /// Horizons.
    pub bound: Bound,
    /// Horizons for standbys, the latest last.
    pub published: Vec<Published>,
    /// Bytes that a later version keeps in the room for it.
    pub(super) room: [u8; ROOM],
}

impl Default for Marks {
    fn default() -> Self {
        let (bound, room) = (Bound::NONE, [0; ROOM]);
        Self { listed: Vec::new(), folded: None, above: i64::MIN, bound, published: Vec::new(), room }
    }
}

/// The part of marks that concerns a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concern {
    /// The time that it has to count as used.
    pub times: Times,
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
        let listed = self.listed.iter().map(|mark| mark.times.until());
        listed.chain(self.folded.as_ref().map(Used::until)).max().unwrap_or(i64::MIN)
    }

    /// The instant that the sequence's last value repeats: after pg_upgrade, it is all that says of horizons, and of
    /// flake_start_above.
    pub fn last_value(&self) -> i64 {
        self.until().max(self.bound.instant).max(self.above)
    }

    /// Returns what these marks say to a server: its own node's mark, those under another number of nodes, as any worker may have
    /// been this node's, and what is folded. `given_back` is the start whose exit note the server continues from, and all that its
    /// file knew of it.
    pub fn concern(&self, me: Author, given_back: &(u32, Used)) -> Concern {
        let mut concern = Concern { times: Times::NONE, is_of_another: false };
        for Mark { by, times } in &self.listed {
            let is_own = by.node == me.node;
            if !is_own && by.node.1 == me.node.1 {
                continue;
            }
            if by.incarnation != me.incarnation {
                concern.times.inherit(&times.all());
                concern.is_of_another = true;
                continue;
            }
            let is_of = |start: u32| is_own && start != 0 && by.start == start;
            if is_of(me.start) {
                continue;
            }
            concern.times.inherit(&times.inherited);
            if !(is_of(given_back.0) && given_back.1.contains(&times.own)) {
                concern.times.own = concern.times.own.united(&times.own, i64::MIN);
            }
        }
        if let Some(folded) = &self.folded {
            concern.times.inherit(folded);
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
        self.above = self.above.max(other.above);
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
    pub fn rename(&mut self, by: Author) {
        if let Some(mark) = self.listed.iter_mut().find(|mark| mark.by.node == by.node) {
            mark.by = by;
        }
    }

    /// Folds the lowest marks where there are too many.
    fn fold(&mut self, except: (u32, u32)) {
        while self.listed.len() > MAX_MARKS {
            let others = (0..self.listed.len()).filter(|&at| self.listed[at].by.node != except);
            let Some(lowest) = others.min_by_key(|&at| self.listed[at].times.until()) else { return };
            let times = self.listed.remove(lowest).times;
            self.fold_in(times.all());
        }
    }

    fn fold_in(&mut self, used: Used) {
        self.folded = Some(self.folded.map_or(used, |folded| folded.united(&used, i64::MIN)));
    }
}

impl Mark {
    /// Adds what another copy of the mark says. Of two starts nobody knows which one the union belongs to; of two incarnations
    /// the one that came further names it, and inherits from the other, which may have gone on.
    fn unite(&mut self, other: &Self) {
        let same_incarnation = self.by.incarnation == other.by.incarnation;
        if same_incarnation {
            self.times = self.times.united(&other.times, i64::MIN);
        } else if other.times.until() > self.times.until() {
            let times = std::mem::replace(&mut self.times, other.times);
            self.times.inherit(&times.all());
            self.by.incarnation = other.by.incarnation;
        } else {
            self.times.inherit(&other.times.all());
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
