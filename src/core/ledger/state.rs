//! The state of the ledger of this server's sessions. This file only computes; the [`protocol`](super::protocol) reads and writes.

use super::block::FilePart;
use super::bound::{Bound, Horizons};
use super::marks::{Author, Mark, Marks};
use super::part_time::{AHEAD, PartTime};
use super::used::Used;
use super::window::Window;
use crate::instant::BEGINNING;
use crate::{Node, Part, Turns};

/// The facts when a ledger begins, after a start or a promotion.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The clock.
    pub now: i64,
    /// When the server started, if that is known.
    pub started_at: Option<i64>,
    /// The node in force.
    pub node: Node,
    /// The timeline of the WAL and the one before it, with their turns.
    pub turns: Turns,
    /// Identifies the run of the operating system.
    pub boot: Option<u64>,
    /// Random numbers other than 0, for an incarnation and for the start.
    pub chance: (u32, u32),
    /// The content of the file, if it exists.
    pub file: Option<&'a (Marks, FilePart)>,
}

/// The state that all sessions of a server share, in plain numbers.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ledger {
    /// The writer of this server's marks.
    pub me: Author,
    /// The timeline of the WAL on which the ledger began and the one before it, with their turns.
    pub turns: Turns,
    /// Whether it began on a new timeline, before its first window.
    pub is_promoted: bool,
    /// The start whose exit note gave time back, and what that start had used including that time. Its pages still say so, and without
    /// this they would take the time back, so that the first ID after each restart would wait for it.
    given_back: Option<(u32, Used)>,
    /// The time of the server's part.
    pub time: PartTime,
    /// This server's knowledge of horizons.
    pub horizons: Horizons,
}

impl Ledger {
    /// Begins the ledger after a start or a promotion.
    pub fn begin(known: &Facts<'_>) -> Self {
        let turn = known.turns.last.map_or(0, |last| last.turn);
        let of_file = known.file.filter(|(marks, _)| marks.turns == known.turns);
        let part = Part::in_turn(known.node, turn).number();
        let own = of_file.and_then(|(marks, file)| marks.of(file.part));
        let incarnation = own.map_or(known.chance.0, |own| own.by.incarnation);
        let me = Author { part, incarnation, start: known.chance.1 };
        // The time that an exit note gives back was granted to the same part, in this run of the operating system.
        let note = known.file.and_then(|(_, file)| file.exit_note).filter(|note| Some(note.boot) == known.boot);
        let left = own.filter(|own| own.by.part == part).zip(note);
        let given_back = left.map(|(own, _)| (own.by.start, own.used));
        let left_used = left.map_or(Used::NONE, |(own, note)| own.used.without(note.free_from, note.until));
        let (used, above, bound) = known.file.map_or((Used::NONE, BEGINNING, Bound::NONE), |(marks, _)| {
            (marks.used_for(me, given_back.as_ref()).united(&left_used), marks.above, marks.bound)
        });
        // Without a file, nothing is known of the time before the start.
        let known_since = known.started_at.unwrap_or(known.now).saturating_add(1);
        Self {
            me,
            turns: known.turns,
            is_promoted: known.file.is_some() && of_file.is_none(),
            given_back,
            time: PartTime::begin(used, above, if known.file.is_some() { BEGINNING } else { known_since }),
            horizons: Horizons::begin(incarnation, bound, left.map(|(_, note)| note.free_from)),
        }
    }

    /// The server's part.
    pub fn part(&self) -> Part {
        Part::numbered(self.me.part)
    }

    /// Returns the ledger after it has read the marks of a page.
    #[must_use]
    pub fn having_read(&self, marks: &Marks) -> Self {
        let is_own = marks.of(self.me.part).is_some_and(|mark| mark.by == self.me);
        let found = marks.used_for(self.me, self.given_back.as_ref());
        Self {
            time: self.time.having_read(&found, marks.above),
            horizons: self.horizons.with(marks.bound, is_own),
            ..*self
        }
    }

    /// Returns up to where an earlier primary with this node's number has made IDs, by the marks of a page, if this server is a new
    /// primary before its first window, and its clock is behind that. An earlier primary's mark was up to [`AHEAD`] ahead of its IDs.
    pub fn behind(&self, page: &Marks, now: i64) -> Option<i64> {
        let is_first = self.is_promoted && self.time.era == 0 && self.time.window.is_none();
        let is_of_node =
            |mark: &&Mark| Part::numbered(mark.by.part).node() == self.part().node() && mark.by.part != self.me.part;
        let until = page.listed().iter().filter(is_of_node).map(|mark| mark.used.until().saturating_sub(AHEAD)).max();
        until.filter(|&until| is_first && until > now)
    }

    /// Returns the ledger with time granted for a tick that contains `now` and ends at `tick_end`.
    ///
    /// # Errors
    /// The instant to wait for.
    pub fn granted(&self, now: i64, tick_end: i64) -> Result<Self, i64> {
        Ok(self.with_time(self.time.granted(now, tick_end)?))
    }

    /// Like [`PartTime::gone_back`].
    ///
    /// # Errors
    /// The instant to wait for.
    pub fn gone_back(&self, now: i64) -> Result<(Self, Window), i64> {
        self.time.gone_back(now).map(|(time, window)| (self.with_time(time), window))
    }

    /// Returns the ledger with other time, which binds other servers if sessions ask for horizons.
    fn with_time(&self, time: PartTime) -> Self {
        let mut new = Self { time, ..*self };
        if let Some(open) = time.window.filter(|_| self.horizons.binds()) {
            new.horizons.bind_upto(open.until);
        }
        new
    }

    /// Returns the ledger with the clock accepted although later IDs or horizons exist. Returns the ledger unchanged if IDs can
    /// be made at the current instant anyway.
    #[must_use]
    pub fn accepted(&self, now: i64) -> Self {
        let mut new = *self;
        if !self.time.is_open_at(now) || now < self.horizons.announced() {
            // No ID is made in the new era before the page of its database says that horizons were recalled.
            new.time = self.time.accepted(now);
            new.horizons.recall(now);
        }
        new
    }

    /// Returns the ledger that uses no tick that begins before an instant, or the ledger unchanged if it uses none anyway.
    #[must_use]
    pub fn starting_above(&self, instant: i64) -> Self {
        Self { time: self.time.starting_above(instant), ..*self }
    }

    /// Returns the ledger of a server whose sessions ask for horizons: the time that it grants binds other servers.
    #[must_use]
    pub fn binding(mut self) -> Self {
        self.horizons.ask();
        self.with_time(self.time)
    }

    /// The mark of this server.
    pub const fn mark(&self) -> Mark {
        Mark { by: self.me, used: self.time.used }
    }

    /// Returns whether marks contain everything that this server must tell others.
    pub fn is_in(&self, marks: &Marks) -> bool {
        marks.have(&self.mark()) && self.time.above <= marks.above && self.horizons.are_in(marks.bound)
    }

    /// Returns whether the ledger knows all used time of these marks.
    pub fn knows(&self, marks: &Marks) -> bool {
        self.having_read(marks).time.used == self.time.used
    }

    /// Returns an instant up to `now` below which no ID is made any more, even if the clock is set back before the next start. The
    /// returned ledger binds other servers up to there, and this server if it gets another number.
    #[must_use]
    pub fn settled(&self, now: i64) -> (Self, i64) {
        let mut new = *self;
        if let Some(open) = self.time.window {
            return (new, now.min(open.until));
        }
        let used_before = self.time.used.accepted_after(BEGINNING);
        let instant = now.min(used_before);
        if self.horizons.bound.instant < instant {
            // The bound is raised some seconds ahead, so that not every call costs a write.
            new.horizons.bind_upto(now.saturating_add(AHEAD).min(used_before));
        }
        (new, instant)
    }
}
