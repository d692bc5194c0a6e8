//! Marks: the high-water marks of nodes, as the file of a server and a page of each database keep them.
//!
//! Several sessions and servers write marks, and each may know something that the others do not. So a writer writes the union of
//! the stored marks and of what it knows, and no used time is ever forgotten. Stored marks have no safety margin; each reader adds
//! one. If writers added it, every failover would raise the mark by another margin.

use super::bound::Bound;
use super::used::Used;
use crate::Node;

/// How many nodes are listed. If there are more, the lowest marks are folded into one that counts for every node.
pub const MAX_MARKS: usize = 150;
/// How many published horizons a page keeps.
pub const MAX_PUBLISHED: usize = 12;
/// Space for later versions, in bytes.
pub const ROOM: usize = 192;
/// By how many microseconds an old primary may have made IDs after the last mark that was replicated.
pub const MARGIN: i64 = 2_000_000;

/// The writer of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Author {
    /// The node number, and the number of nodes.
    pub node: (u32, u32),
    /// A random number, drawn at each promotion and when the server's file is lost.
    pub incarnation: u32,
    /// A random number, drawn at each start; 0 if several starts have written the mark.
    pub start: u32,
}

/// The time that an incarnation has used itself, and the time that it inherited from others. Only inherited time needs a margin,
/// because the last IDs of others may be missing in it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Its own used time.
    pub own: Used,
    /// Inherited used time, without a margin.
    pub inherited: Used,
}

impl Times {
    /// Nothing is used.
    pub const NONE: Self = Self { own: Used::NONE, inherited: Used::NONE };

    /// Used time of its own, and none inherited.
    pub const fn own(own: Used) -> Self {
        Self { own, ..Self::NONE }
    }

    /// Returns the used time from the incarnation's point of view: inherited time has one margin, however many servers it came
    /// from.
    pub fn used(&self, present: i64) -> Used {
        self.own.united(&self.inherited.later(MARGIN), present)
    }

    /// Returns what another incarnation inherits from this one.
    pub fn all(&self) -> Used {
        self.own.united(&self.inherited, i64::MIN)
    }

    /// Returns the union.
    #[must_use]
    pub fn united(&self, other: &Self, present: i64) -> Self {
        Self { own: self.own.united(&other.own, present), inherited: self.inherited.united(&other.inherited, present) }
    }

    /// Returns whether `other` has used nothing more.
    pub fn contains(&self, other: &Self) -> bool {
        self.own.contains(&other.own) && self.inherited.contains(&other.inherited)
    }

    /// Adds time that another incarnation has used.
    fn inherit(&mut self, other: &Used) {
        self.inherited = self.inherited.united(other, i64::MIN);
    }

    fn until(&self) -> i64 {
        self.own.until().max(self.inherited.until())
    }
}

/// The used time of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The writer.
    pub by: Author,
    /// The used time.
    pub times: Times,
}

/// A horizon that the primary has published for snapshots of standbys. Only pages have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// The horizon.
    pub horizon: i64,
    /// A transaction ID that was not yet assigned when the horizon's snapshot was taken.
    pub next: u64,
}

/// The content of a file or a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    pub(super) listed: Vec<Mark>,
    /// Folded marks, which count for every node.
    pub(super) folded: Option<Used>,
    /// The instant that flake_start_above was given. It belongs to the data: no server that has the data makes an ID in a tick that
    /// begins before it.
    pub above: i64,
    /// The bound on horizons.
    pub bound: Bound,
    /// Horizons for standbys, the latest last.
    pub published: Vec<Published>,
    /// The space for later versions, copied unchanged.
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
    /// The time that counts as used for the server.
    pub times: Times,
    /// Whether another incarnation has used any of it. That one may still run for up to [`MARGIN`].
    pub is_of_another: bool,
}

impl Marks {
    /// Marks that only say what all nodes together have used.
    pub fn of_all(used: Used) -> Self {
        Self { folded: Some(used), ..Self::default() }
    }

    /// The marks of single nodes.
    pub fn listed(&self) -> &[Mark] {
        &self.listed
    }

    /// Returns the mark of a node.
    pub fn of(&self, node: (u32, u32)) -> Option<&Mark> {
        self.listed.iter().find(|mark| mark.by.node == node)
    }

    /// Returns the end of the time that any node has used.
    pub fn until(&self) -> i64 {
        let listed = self.listed.iter().map(|mark| mark.times.until());
        listed.chain(self.folded.as_ref().map(Used::until)).max().unwrap_or(i64::MIN)
    }

    /// Returns the sequence's last value. pg_upgrade keeps nothing else, so the value covers used time, horizons and
    /// flake_start_above.
    pub fn last_value(&self) -> i64 {
        self.until().max(self.bound.instant).max(self.above)
    }

    /// Returns which of these marks count for a server: its own node's mark; marks under another number of nodes, because their
    /// workers may be the server's; and folded marks. `given_back` is the start whose exit note the server continues from, and what
    /// that start had used according to the file.
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

    /// Unites these marks with others, except the mark of one node.
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

    /// Unites the bounds. A recall removes the published horizons from before it.
    pub fn bind(&mut self, bound: Bound) {
        if bound.recalls > self.bound.recalls {
            self.published.clear();
        }
        self.bound = self.bound.united(bound);
    }

    /// Replaces the mark of a node. The new mark must contain the old one.
    pub fn set(&mut self, mark: Mark) {
        let node = mark.by.node;
        self.listed.retain(|known| known.by.node != node);
        self.listed.push(mark);
        self.fold(node);
    }

    /// Changes the writer of a node's mark, if the mark is listed.
    pub fn rename(&mut self, by: Author) {
        if let Some(mark) = self.listed.iter_mut().find(|mark| mark.by.node == by.node) {
            mark.by = by;
        }
    }

    /// Folds the lowest marks if there are too many.
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
    /// Unites two copies of a node's mark. If two starts wrote them, neither is the writer of the union. If two incarnations did,
    /// the one with the later mark is, and it inherits the time of the other one, which may still run.
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
