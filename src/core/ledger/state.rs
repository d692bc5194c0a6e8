//! The state of the ledger: which time the server has used, and the window in which its sessions make IDs now. This file only
//! computes; [`protocol`](super::protocol) reads and writes.

use super::block::FilePart;
use super::bound::{Bound, Horizons};
use super::marks::{Author, Mark, Marks};
use super::note::ExitNote;
use super::used::Used;
use super::window::Window;
use crate::{Node, PARTS, Part};

/// How far ahead of the clock time is granted to sessions, in microseconds. A crash can cost that much time.
pub const AHEAD: i64 = 3_000_000;
/// How far ahead of the clock no restart and no failover explains that a time was used, in microseconds.
pub const FAR: i64 = AHEAD + 2_000_000;

/// The facts when a ledger begins, after a start or a promotion.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The clock.
    pub now: i64,
    /// When the server started, if that is known.
    pub started_at: Option<i64>,
    /// The node in force.
    pub node: Node,
    /// The timeline of the WAL, and its turn.
    pub wal_timeline: u32,
    /// The turn of that timeline by its history.
    pub turn: u32,
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
    /// How far ahead of the clock time is granted.
    ahead: i64,
    /// The timeline of the WAL on which the ledger began.
    pub wal_timeline: u32,
    /// Whether it began on a new timeline, under which nobody has leased anything yet.
    pub is_promoted: bool,
    /// The start whose exit note gave time back, and what that start had used including that time; 0 if there was no note.
    given_back: (u32, Used),
    /// Nothing is known of the time before this instant, so eras begin above it.
    known_since: i64,
    /// The used time in this server's mark.
    pub marked: Used,
    /// The instant that flake_start_above was given: no tick is used that begins before it.
    pub above: i64,
    /// All time that counts as used: the mark, and everything below `above`.
    pub used: Used,
    /// This server's knowledge of horizons.
    pub horizons: Horizons,
    /// How often the window moved to time that does not follow it. Progress of another era does not count.
    pub era: u64,
    /// From this instant to the end of the window, only this era has made IDs.
    pub floor: i64,
    /// The granted time, in which sessions make IDs now.
    pub window: Window,
}

impl Ledger {
    /// Begins the ledger after a start or a promotion.
    pub fn begin(known: &Facts<'_>) -> Self {
        let of_file = known.file.filter(|(_, file)| file.wal_timeline == known.wal_timeline);
        // On one timeline the turn stays, even if the history cannot be read any more.
        let turn = of_file.map_or(known.turn, |(_, file)| file.part.0 % PARTS);
        let part = Part::of_sessions(known.node, turn).number();
        let own = of_file.and_then(|(marks, file)| marks.of(file.part));
        let incarnation = own.map_or(known.chance.0, |own| own.by.incarnation);
        let mut ledger = Self {
            me: Author { part, incarnation, start: known.chance.1 },
            ahead: AHEAD,
            wal_timeline: known.wal_timeline,
            is_promoted: known.file.is_some() && of_file.is_none(),
            given_back: (0, Used::NONE),
            known_since: if known.file.is_some() {
                i64::MIN
            } else {
                known.started_at.unwrap_or(known.now).saturating_add(1)
            },
            marked: Used::NONE,
            above: i64::MIN,
            used: Used::NONE,
            horizons: Horizons::begin(incarnation, Bound::NONE, i64::MAX),
            era: 0,
            floor: i64::MIN,
            window: Window::NONE,
        };
        if let Some((marks, file)) = known.file {
            let note = file.exit_note.filter(|note| Some(note.boot) == known.boot);
            ledger.go_on(marks, own.filter(|own| own.by.part == part).zip(note));
        }
        ledger
    }

    /// Begins the ledger of the lessees' part in the same turn, for the same incarnation and start.
    pub fn of_lessees(&self, ahead: i64, file: Option<&Marks>) -> Self {
        let part = self.part();
        let mut ledger = Self {
            me: Author { part: Part::of_lessees(part.node(), part.turn()).number(), ..self.me },
            ahead,
            given_back: (0, Used::NONE),
            marked: Used::NONE,
            above: self.above,
            used: Used::NONE,
            horizons: Horizons::begin(self.me.incarnation, Bound::NONE, i64::MAX),
            era: 0,
            floor: i64::MIN,
            window: Window::NONE,
            ..*self
        };
        match file {
            Some(marks) => ledger.go_on(marks, None),
            None => ledger.count(i64::MIN),
        }
        // No rows of this server have IDs of that part, so it holds no horizons.
        ledger.horizons = Horizons::begin(self.me.incarnation, Bound::NONE, i64::MAX);
        ledger
    }

    /// The part of the server's sessions.
    pub fn part(&self) -> Part {
        Part::numbered(self.me.part)
    }

    /// Begins with the content of the file. `left` is this part's mark in it, and an exit note that gives back time of that mark.
    fn go_on(&mut self, marks: &Marks, left: Option<(&Mark, ExitNote)>) {
        let mut left_used = Used::NONE;
        if let Some((own, note)) = left {
            self.given_back = (own.by.start, own.used);
            left_used = own.used.without(note.free_from, note.until);
        }
        self.marked = marks.concern(self.me, &self.given_back).united(&left_used, i64::MIN);
        self.above = marks.above;
        let free_from = left.map_or(i64::MAX, |(_, note)| note.free_from);
        self.horizons = Horizons::begin(self.me.incarnation, marks.bound, free_from);
        self.count(i64::MIN);
    }

    /// Adds to the used time. `present` is the clock: the gap around it is kept if gaps must be dropped.
    fn count(&mut self, present: i64) {
        let used = self.marked.united(&Used::before(self.above), present);
        self.used = self.used.united(&used, present);
        if self.is_open() {
            self.window = self.used.window(self.window.from, self.window.until);
        }
    }

    /// Whether a window is open.
    pub const fn is_open(&self) -> bool {
        self.window.until > i64::MIN
    }

    /// The end of the window; if none is open, the end of all used time.
    pub const fn until(&self) -> i64 {
        if self.is_open() { self.window.until } else { self.used.until() }
    }

    /// Returns the ledger after it has read the marks of a page. If IDs may have been made in the window before, the window is closed.
    #[must_use]
    pub fn having_read(&self, marks: &Marks, now: i64) -> Self {
        let mut new = *self;
        let found = marks.concern(self.me, &self.given_back);
        if self.is_open() && found.touches(self.floor, self.window.until) {
            new.close();
        }
        new.marked = self.marked.united(&found, now);
        new.raise(marks.above);
        let is_own = marks.of(self.me.part).is_some_and(|mark| mark.by == self.me);
        new.horizons = self.horizons.with(marks.bound, is_own);
        new.count(now);
        new
    }

    /// Returns up to where an earlier primary with this node's number has made IDs, by the marks of a page, if this server is a new
    /// primary before its first window, and its clock is behind that. An earlier primary's mark was up to [`AHEAD`] ahead of its IDs.
    pub fn behind(&self, page: &Marks, now: i64) -> Option<i64> {
        let is_first = self.is_promoted && self.era == 0 && !self.is_open();
        // Lessees' parts have rows of this server's data too, but their marks are a minute ahead.
        let is_of_node = |mark: &&Mark| {
            let part = Part::numbered(mark.by.part);
            part.node() == self.part().node() && part.is_of_sessions() && mark.by.part != self.me.part
        };
        let until = page.listed().iter().filter(is_of_node).map(|mark| mark.used.until().saturating_sub(AHEAD)).max();
        until.filter(|&until| is_first && until > now)
    }

    fn close(&mut self) {
        self.window = Window::NONE;
        self.era += 1;
    }

    /// Closes a window that began below an instant, so that no tick is used that begins before it.
    fn raise(&mut self, instant: i64) {
        if self.is_open() && self.floor < instant {
            self.close();
        }
        self.above = self.above.max(instant);
    }

    /// Returns the ledger with time granted for a tick that contains `now` and ends at `tick_end`.
    ///
    /// # Errors
    /// The instant to wait for.
    pub fn granted(&self, now: i64, tick_end: i64) -> Result<Self, i64> {
        let (mut new, open) = (*self, self.window);
        if self.is_open() && now < open.until {
            if now < open.from {
                return Err(open.from);
            }
            if tick_end > open.skip {
                return Err(self.used.accepted_after(open.skip.saturating_sub(1)));
            }
            new.window.until = now.saturating_add(self.ahead).min(open.skip).max(open.until);
            new.marked = self.marked.with(open.until, new.window.until, now);
        } else {
            let free = self.used.free_at(now).filter(|free| free.accepted);
            let free = free.ok_or_else(|| self.used.accepted_after(now))?;
            if tick_end > free.to {
                return Err(self.used.accepted_after(free.to.saturating_sub(1)));
            }
            // If nothing was used since the last window ended, the era continues.
            if !self.is_open() || free.from != open.until {
                new.era += 1;
                new.floor = free.from.max(self.known_since.min(now.saturating_add(1)));
            }
            let until = now.saturating_add(self.ahead).min(free.to);
            new.window = Window { from: now, until, skip: free.to };
            new.marked = self.marked.leaving(now).with(now, until, now).forgetting(now, self.ahead + FAR);
            new.used = self.used.leaving(now);
        }
        new.count(now);
        new.bind();
        Ok(new)
    }

    /// Returns the ledger that counts `now` as used, which lies before the window, and the used time around it as a window. It
    /// serves generators that go back in time, which know what they have used there in this era.
    ///
    /// # Errors
    /// The instant to wait for.
    pub fn gone_back(&self, now: i64) -> Result<(Self, Window), i64> {
        if now < self.floor {
            return Err(self.floor);
        }
        let mut new = *self;
        if let Some(gap) = self.used.free_at(now) {
            new.marked = self.marked.with(now, now.saturating_add(AHEAD).min(gap.to), now);
            new.count(now);
        }
        let (from, until) = new.used.around(now);
        let Window { until: end, skip, .. } = self.window;
        Ok((new, Window { from: from.max(self.floor), until: until.min(end), skip }))
    }

    /// Returns the ledger with the clock accepted although later IDs or horizons exist. Returns the ledger unchanged if sessions
    /// can make IDs at the current instant anyway: a session that has begun since the clock read `last_seen` makes none before that.
    #[must_use]
    pub fn accepted(&self, now: i64, last_seen: i64) -> Self {
        let mut new = *self;
        let is_present = self.is_open() && self.window.from <= now && now < self.window.until;
        if is_present && self.horizons.announced() <= now && last_seen <= self.window.until {
            return new;
        }
        // A new era also stops generators that have begun above a time that is not valid any more. No ID is made in it before the
        // page of its database says that horizons were recalled.
        new.close();
        new.marked = self.marked.accepting(now);
        new.known_since = now;
        new.horizons.recall(now);
        new.count(now);
        new
    }

    /// Returns the ledger that uses no tick that begins before an instant, or the ledger unchanged if it uses none anyway.
    #[must_use]
    pub fn starting_above(&self, instant: i64) -> Self {
        let mut new = *self;
        new.raise(instant);
        new.count(i64::MIN);
        new
    }

    /// Returns the ledger of a server whose sessions ask for horizons: the time that it grants binds other servers.
    #[must_use]
    pub fn binding(mut self) -> Self {
        self.horizons.ask();
        self.bind();
        self
    }

    fn bind(&mut self) {
        if self.horizons.binds() && self.is_open() {
            self.horizons.bind_upto(self.window.until);
        }
    }

    /// Returns the exit note of the last session: time of the window from `free_from` on was not used.
    pub fn exit_note(&self, boot: u64, free_from: i64) -> Option<ExitNote> {
        // The tick that was running when the window opened counts as used up to its end, so at least one instant of the window
        // stays used.
        let free_from = free_from.max(self.floor).max(self.window.from.saturating_add(1));
        self.is_open().then_some(ExitNote { boot, free_from, until: self.window.until })
    }

    /// The mark of this server.
    pub const fn mark(&self) -> Mark {
        Mark { by: self.me, used: self.marked }
    }

    /// Returns whether marks contain everything that this server must tell others.
    pub fn is_in(&self, marks: &Marks) -> bool {
        let is_mine = |mark: &&Mark| mark.by == self.me && mark.used.contains(&self.marked);
        marks.of(self.me.part).filter(is_mine).is_some()
            && self.above <= marks.above
            && self.horizons.are_in(marks.bound)
    }

    /// Returns an instant up to `now` below which no ID is made any more, even if the clock is set back before the next start. The
    /// returned ledger binds other servers up to there, and this server if it gets another number.
    #[must_use]
    pub fn settled(&self, now: i64) -> (Self, i64) {
        let mut new = *self;
        if self.is_open() {
            return (new, now.min(self.window.until));
        }
        let used_before = self.used.accepted_after(i64::MIN);
        let instant = now.min(used_before);
        if self.horizons.bound.instant < instant {
            // The bound is raised some seconds ahead, so that not every call costs a write.
            new.horizons.bind_upto(now.saturating_add(AHEAD).min(used_before));
        }
        (new, instant)
    }

    /// Returns the first instant from `now` on at which a window is or can be open.
    pub fn next_free(&self, now: i64) -> i64 {
        match self.used.free_at(now) {
            _ if self.is_open() && self.window.from <= now && now < self.window.until => now,
            Some(free) if free.accepted => now,
            _ => self.used.accepted_after(now),
        }
    }
}
