//! Marks: the high-water marks of nodes, as the file of a server and a page of each database keep them.
//!
//! Several sessions and servers write marks, and each may know something that the others do not. So a writer writes the union of
//! the stored marks and of what it knows, and no used time is ever forgotten.
//!
//! A mark has the number of a [part](crate::Part): marks of two parts of one node do not concern each other.

use super::bound::Bound;
use super::used::Used;
use crate::Turns;
use crate::instant::BEGINNING;

/// How many parts of nodes are listed. If there are more, the lowest marks are folded into one that counts for every part.
pub const MAX_MARKS: usize = 200;
/// How many published horizons a page keeps.
pub const MAX_PUBLISHED: usize = 12;
/// Space for later versions, in bytes.
pub const ROOM: usize = 184;

/// The writer of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Author {
    /// The number of the part of the node, and how many parts all nodes have.
    pub part: (u32, u32),
    /// A random number, drawn at each promotion and when the server's file is lost.
    pub incarnation: u32,
    /// A random number, drawn at each start; 0 if several starts have written the mark.
    pub start: u32,
}

/// The used time of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The writer.
    pub by: Author,
    /// The used time.
    pub used: Used,
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
    /// Folded marks, which count for every part.
    pub(super) folded: Option<Used>,
    /// The instant that flake_start_above was given. It belongs to the data: no server that has the data makes an ID in a tick that
    /// begins before it.
    pub above: i64,
    /// The bound on horizons.
    pub bound: Bound,
    /// Horizons for standbys, the latest last.
    pub published: Vec<Published>,
    /// The timeline of the last writer, and the one before it, with their turns.
    pub turns: Turns,
    /// The space for later versions, copied unchanged.
    pub(super) room: [u8; ROOM],
}

impl Default for Marks {
    fn default() -> Self {
        let (bound, room) = (Bound::NONE, [0; ROOM]);
        let turns = Turns::NONE;
        Self { listed: Vec::new(), folded: None, above: BEGINNING, bound, published: Vec::new(), turns, room }
    }
}

impl Marks {
    /// Marks that only say what all parts together have used.
    pub fn of_all(used: Used) -> Self {
        Self { folded: Some(used), ..Self::default() }
    }

    /// The marks of single parts.
    pub fn listed(&self) -> &[Mark] {
        &self.listed
    }

    /// Returns whether they contain what a mark says, by the same writer.
    pub fn have(&self, own: &Mark) -> bool {
        self.of(own.by.part).is_some_and(|mark| mark.by == own.by && mark.used.contains(&own.used))
    }

    /// Returns the mark of a part.
    pub fn of(&self, part: (u32, u32)) -> Option<&Mark> {
        self.listed.iter().find(|mark| mark.by.part == part)
    }

    /// Returns the end of the time that any part has used.
    pub fn until(&self) -> i64 {
        let listed = self.listed.iter().map(|mark| mark.used.until());
        listed.chain(self.folded.as_ref().map(Used::until)).max().unwrap_or(BEGINNING)
    }

    /// Returns the sequence's last value. pg_upgrade keeps nothing else, so the value covers horizons and used time, which
    /// includes all time before the instant of flake_start_above.
    pub fn last_value(&self) -> i64 {
        self.until().max(self.bound.instant)
    }

    /// Returns the used time that counts for a server: what is in its own part's mark; in marks under another number of parts, because
    /// their workers may be the server's; and in folded marks. The time that this start has written itself does not count, nor what
    /// `given_back` has: the start whose exit note the server continues from, and what that start had used according to the file.
    pub fn used_for(&self, me: Author, given_back: Option<&(u32, Used)>) -> Used {
        let is_of_another_part = |by: &Author| by.part != me.part && by.part.1 == me.part.1;
        let is_given_back = |mark: &Mark| {
            given_back.is_some_and(|(start, used)| {
                mark.by == Author { start: *start, ..me } && *start != 0 && used.contains(&mark.used)
            })
        };
        let counts = |mark: &&Mark| !is_of_another_part(&mark.by) && mark.by != me && !is_given_back(mark);
        let counting = self.listed.iter().filter(counts).map(|mark| &mark.used);
        counting.chain(&self.folded).fold(Used::NONE, |used, other| used.united(other))
    }

    /// Unites these marks with others, except the mark of one part.
    pub fn unite(&mut self, other: &Self, except: (u32, u32)) {
        for mark in other.listed.iter().filter(|mark| mark.by.part != except) {
            match self.listed.iter_mut().find(|known| known.by.part == mark.by.part) {
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

    /// Replaces the mark of a part. The new mark must contain the old one.
    pub fn set(&mut self, mark: Mark) {
        let part = mark.by.part;
        self.listed.retain(|known| known.by.part != part);
        self.listed.push(mark);
        self.fold(part);
    }

    /// Folds the lowest marks if there are too many.
    fn fold(&mut self, except: (u32, u32)) {
        while self.listed.len() > MAX_MARKS {
            let others = (0..self.listed.len()).filter(|&at| self.listed[at].by.part != except);
            let Some(lowest) = others.min_by_key(|&at| self.listed[at].used.until()) else { return };
            let used = self.listed.remove(lowest).used;
            self.fold_in(used);
        }
    }

    fn fold_in(&mut self, used: Used) {
        self.folded = Some(self.folded.map_or(used, |folded| folded.united(&used)));
    }
}

impl Mark {
    /// Unites two copies of a part's mark. If two starts wrote them, neither is the writer of the union. If two incarnations did, the
    /// one with the later mark is.
    fn unite(&mut self, other: &Self) {
        if self.by == other.by {
            self.used = self.used.united(&other.used);
            return;
        }
        if other.used.until() > self.used.until() {
            self.by = other.by;
        }
        self.used = self.used.united(&other.used);
        self.by.start = 0;
    }
}
