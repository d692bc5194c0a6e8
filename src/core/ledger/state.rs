//! The ledger of a server: which time it has used, and the window in which its sessions make IDs now. Arithmetic only.

use super::block::FilePart;
use super::bound::{Bound, Horizons};
use super::lookout::Lookout;
use super::marks::{Author, MARGIN, Mark, Marks, Times};
use super::note::ExitNote;
use super::used::Used;
use super::window::Window;

/// How far ahead of the clock time is granted to sessions, in microseconds. A crash can cost this much time.
pub const AHEAD: i64 = 3_000_000;

/// The facts when a server begins to make IDs, after a start or a promotion.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The present instant.
    pub now: i64,
    /// The same by a clock that nobody sets.
    pub steady: i64,
    /// When the server started, if that is known.
    pub started_at: Option<i64>,
    /// The node in force, and the number of nodes.
    pub node: (u32, u32),
    /// The timeline of the WAL.
    pub wal_timeline: u32,
    /// Identifies the run of the operating system.
    pub boot: Option<u64>,
    /// Chance numbers for an incarnation and for the start; neither is 0.
    pub chance: (u32, u32),
    /// The content of the file, if there is one.
    pub file: Option<&'a (Marks, FilePart)>,
}

/// The use of time, which all sessions of a server share, in plain numbers.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ledger {
    /// In whose name this server writes marks.
    pub me: Author,
    /// How far ahead of the clock time is granted.
    ahead: i64,
    /// When the ledger began, by a clock that nobody sets.
    begun_at: i64,
    /// The timeline of the WAL that it began on.
    pub wal_timeline: u32,
    /// The look-out for an old primary.
    pub lookout: Lookout,
    /// The start whose exit note the ledger continues from, and what it had used with that; 0 if there is none.
    given_back: (u32, Used),
    /// Before this instant nothing is known, so eras begin above it.
    known_since: i64,
    /// The time that is used, as this server's mark says it.
    pub times: Times,
    /// What flake_start_above was told: whatever the data comes from, no tick is used that begins before.
    pub above: i64,
    /// All time that counts as used here: by the mark, with margins, and by flake_start_above.
    pub used: Used,
    /// What is known of horizons.
    pub horizons: Horizons,
    /// How often the window changed to time that does not follow it; progress made in another era does not count.
    pub era: u64,
    /// Between this instant and the end of the window, nothing is used but by this era.
    pub floor: i64,
    /// The time that is granted now, which sessions may use.
    pub window: Window,
}

impl Ledger {
    /// Begins after a start or a promotion.
    pub fn begin(known: &Facts<'_>) -> Self {
        let of_file = known.file.filter(|(_, file)| file.wal_timeline == known.wal_timeline);
        let own = of_file.and_then(|(marks, file)| marks.of(file.node));
        let incarnation = own.map_or(known.chance.0, |own| own.by.incarnation);
        let waits = of_file.is_some_and(|(_, file)| file.waits);
        // Nobody has looked out for an old primary of this number yet, or not for long.
        let watches = of_file.is_none_or(|(_, file)| file.watches || file.node != known.node) || own.is_none();
        let mut ledger = Self {
            me: Author { node: known.node, incarnation, start: known.chance.1 },
            ahead: AHEAD,
            begun_at: known.steady,
            wal_timeline: known.wal_timeline,
            lookout: Lookout::begin(known.steady, watches || waits),
            given_back: (0, Used::NONE),
            known_since: if known.file.is_some() {
                i64::MIN
            } else {
                known.started_at.unwrap_or(known.now).saturating_add(1)
            },
            times: Times::NONE,
            above: i64::MIN,
            used: Used::NONE,
            horizons: Horizons::begin(incarnation, Bound::NONE, i64::MAX),
            era: 0,
            floor: i64::MIN,
            window: Window::NONE,
        };
        // The page that says the same of another incarnation may be gone.
        let meets_another =
            known.file.is_some_and(|(marks, _)| marks.concern(ledger.me, &ledger.given_back).is_of_another);
        if waits || watches && meets_another {
            ledger.wait(known.now, known.steady);
        }
        if let Some((marks, file)) = known.file {
            let note = file.exit_note.filter(|note| Some(note.boot) == known.boot);
            ledger.go_on(marks, own.filter(|own| own.by.node == known.node).zip(note));
        }
        ledger
    }

    /// Begins the ledger of another node's number, in the name of the same incarnation and start. It opens no window until so long
    /// after this one began.
    pub fn of_another(&self, node: (u32, u32), ahead: i64, wait: i64, file: Option<&Marks>) -> Self {
        let mut ledger = Self {
            me: Author { node, ..self.me },
            ahead,
            lookout: Lookout::waiting(self.begun_at.saturating_add(wait)),
            given_back: (0, Used::NONE),
            times: Times::NONE,
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
        // Rows with IDs of this number hold no horizon.
        ledger.horizons = Horizons::begin(self.me.incarnation, Bound::NONE, i64::MAX);
        ledger
    }

    /// Begins with what the file says. `left` is this node's own mark there, and a note that gives time of it back.
    fn go_on(&mut self, marks: &Marks, left: Option<(&Mark, ExitNote)>) {
        self.times = marks.concern(self.me, &self.given_back).times;
        self.above = marks.above;
        if let Some((own, note)) = left {
            self.given_back = (own.by.start, own.times.own);
            self.times.own = self.times.own.without(note.free_from, note.until);
        }
        let free_from = left.map_or(i64::MAX, |(_, note)| note.free_from);
        self.horizons = Horizons::begin(self.me.incarnation, marks.bound, free_from);
        self.count(i64::MIN);
    }

    /// Counts what is used, besides what was. `present` is the clock, whose gap is kept.
    fn count(&mut self, present: i64) {
        let used = self.times.used(present).united(&Used::before(self.above), present);
        self.used = self.used.united(&used, present);
        if self.is_open() {
            self.window = self.used.window(self.window.from, self.window.until);
        }
    }

    /// Whether time is granted.
    pub const fn is_open(&self) -> bool {
        self.window.until > i64::MIN
    }

    /// The end of the window; where there is none, of all time that is used.
    pub const fn until(&self) -> i64 {
        if self.is_open() { self.window.until } else { self.used.until() }
    }

    /// Returns the ledger that has taken in what a page says. A window in which another server may have made IDs ends.
    #[must_use]
    pub fn having_read(&self, marks: &Marks, now: i64, steady: i64) -> Self {
        let mut new = *self;
        let concern = marks.concern(self.me, &self.given_back);
        let meets_another = concern.is_of_another && self.lookout.is_on(steady);
        if meets_another {
            new.wait(now, steady);
        }
        let found = concern.times.used(i64::MIN);
        if self.is_open() && (meets_another || found.touches(self.floor, self.window.until)) {
            new.close();
        }
        new.times = self.times.united(&concern.times, now);
        new.raise(marks.above);
        let is_own = marks.of(self.me.node).is_some_and(|mark| mark.by == self.me);
        new.horizons = self.horizons.with(marks.bound, is_own);
        new.count(now);
        new
    }

    /// Opens no window in its first seconds.
    fn wait(&mut self, now: i64, steady: i64) {
        self.lookout.wait();
        // Ticks that begin before may have been used.
        self.known_since = self.known_since.max(now.saturating_add(self.lookout.left(steady)));
    }

    fn close(&mut self) {
        self.window = Window::NONE;
        self.era += 1;
    }

    /// Uses no tick that begins before an instant.
    fn raise(&mut self, instant: i64) {
        if self.is_open() && self.floor < instant {
            self.close();
        }
        self.above = self.above.max(instant);
    }

    /// Returns the ledger with time granted for a tick that holds `now` and ends at `tick_end`.
    ///
    /// # Errors
    /// The instant to wait for.
    pub fn granted(&self, now: i64, steady: i64, tick_end: i64) -> Result<Self, i64> {
        if self.lookout.is_waiting(steady) {
            return Err(self.opens_at(now, steady));
        }
        let (mut new, open) = (*self, self.window);
        if self.is_open() && now < open.until {
            if now < open.from {
                return Err(open.from);
            }
            if tick_end > open.skip {
                return Err(self.used.accepted_after(open.skip.saturating_sub(1)));
            }
            new.window.until = now.saturating_add(self.ahead).min(open.skip).max(open.until);
            new.times.own = self.times.own.with(open.until, new.window.until, now);
        } else {
            let free = self.used.free_at(now).filter(|free| free.accepted);
            let free = free.ok_or_else(|| self.used.accepted_after(now))?;
            if tick_end > free.to {
                return Err(self.used.accepted_after(free.to.saturating_sub(1)));
            }
            // Where nothing was used since the window ended, its era goes on.
            if !self.is_open() || free.from != open.until {
                new.era += 1;
                new.floor = free.from.max(self.known_since.min(now.saturating_add(1)));
            }
            new.lookout.opens();
            let until = now.saturating_add(self.ahead).min(free.to);
            new.window = Window { from: now, until, skip: free.to };
            new.times.own = self.times.own.leaving(now).with(now, until, now).forgetting(now, self.ahead + 2 * MARGIN);
            new.times.inherited = self.times.inherited.leaving(now);
            new.used = self.used.leaving(now);
        }
        new.count(now);
        new.bind();
        Ok(new)
    }

    /// Returns the ledger that counts `now`, which lies before the window, as used, and the window around it. This is for
    /// generators that go back in time: they know what they have used there in this era.
    ///
    /// # Errors
    /// The instant to wait for.
    pub fn gone_back(&self, now: i64) -> Result<(Self, Window), i64> {
        if now < self.floor {
            return Err(self.floor);
        }
        let mut new = *self;
        if let Some(gap) = self.used.free_at(now) {
            new.times.own = self.times.own.with(now, now.saturating_add(AHEAD).min(gap.to), now);
            new.count(now);
        }
        let (from, until) = new.used.around(now);
        let Window { until: end, skip, .. } = self.window;
        Ok((new, Window { from: from.max(self.floor), until: until.min(end), skip }))
    }

    /// Returns the ledger that goes on at the present clock although later IDs, or horizons, exist; the same if nothing keeps it
    /// from that for longer than the window lasts.
    #[must_use]
    pub fn accepted(&self, now: i64) -> Self {
        let mut new = *self;
        let is_present = self.is_open() && self.window.from <= now && now < self.window.until;
        if is_present && self.horizons.announced() <= now {
            return new;
        }
        // Also of generators that have begun above a time that was not accepted. In a new era no ID is made before the page of
        // its database says that horizons were taken back.
        new.close();
        let Times { own, inherited } = self.times;
        new.times = Times { own: own.accepting(now), inherited: inherited.accepting(now) };
        new.known_since = now;
        new.horizons.recall(now);
        new.count(now);
        new
    }

    /// Returns the ledger that makes no ID in a tick that begins before an instant; the same if none does.
    #[must_use]
    pub fn starting_above(&self, instant: i64) -> Self {
        let mut new = *self;
        new.raise(instant);
        new.count(i64::MIN);
        new
    }

    /// Returns the ledger of a server on which horizons are asked for: what it grants binds other servers.
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

    /// Returns the note that the last session leaves: of the window, time from `free_from` on was not used.
    pub fn exit_note(&self, boot: u64, free_from: i64) -> Option<ExitNote> {
        // A tick that has begun before the window did is used as long as an instant of it is.
        let free_from = free_from.max(self.floor).max(self.window.from.saturating_add(1));
        self.is_open().then_some(ExitNote { boot, free_from, until: self.window.until })
    }

    /// This server's mark.
    pub const fn mark(&self) -> Mark {
        Mark { by: self.me, times: self.times }
    }

    /// Returns whether marks say all that this server has to say.
    pub fn is_in(&self, marks: &Marks) -> bool {
        let is_mine = |mark: &&Mark| mark.by == self.me && mark.times.contains(&self.times);
        marks.of(self.me.node).filter(is_mine).is_some()
            && self.above <= marks.above
            && self.horizons.are_in(marks.bound)
    }

    /// Returns the first instant from `now` on at which a window can be opened.
    pub fn opens_at(&self, now: i64, steady: i64) -> i64 {
        self.next_free(now.saturating_add(self.lookout.left(steady)))
    }

    /// Returns an instant at `now` or below which no ID is made any more, whatever the clock says at the next start, and the
    /// ledger that binds other servers, and this one under another number, up to there.
    #[must_use]
    pub fn settled(&self, now: i64) -> (Self, i64) {
        let mut new = *self;
        if self.is_open() {
            return (new, now.min(self.window.until));
        }
        let used_before = self.used.accepted_after(i64::MIN);
        let instant = now.min(used_before);
        if self.horizons.bound.instant < instant {
            // Not each question of a while costs a write.
            new.horizons.bind_upto(now.saturating_add(AHEAD).min(used_before));
        }
        (new, instant)
    }

    /// Returns the first instant from `now` on at which a window can be open.
    pub fn next_free(&self, now: i64) -> i64 {
        match self.used.free_at(now) {
            _ if self.is_open() && self.window.from <= now && now < self.window.until => now,
            Some(free) if free.accepted => now,
            _ => self.used.accepted_after(now),
        }
    }
}
