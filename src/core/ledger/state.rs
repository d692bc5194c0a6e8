//! The ledger of a server: which time it has used, and the stretch in which its sessions make IDs now. Arithmetic only.

use super::block::FilePart;
use super::marks::{Bound, MARGIN, Mark, Marks, Writer};
use super::note::ExitNote;
use super::used::Used;
use super::window::Window;

/// How far ahead of the clock time is granted, in microseconds. A crash can cost this much time.
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
    /// The timeline of the WAL; 0 on a standby.
    pub wal_timeline: u32,
    /// Whether the server is a standby.
    pub in_recovery: bool,
    /// Identifies the run of the operating system.
    pub boot: Option<u64>,
    /// Chance numbers for an incarnation and for the start; neither is 0.
    pub chance: (u32, u32),
    /// The content of the file, if there is one.
    pub file: Option<&'a (Marks, FilePart)>,
    /// The era of the ledger before, if the server was promoted.
    pub era: u64,
}

/// The use of time, which all sessions of a server share, in plain numbers.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ledger {
    /// In whose name this server writes marks.
    pub me: Writer,
    /// The timeline of the WAL that it began on.
    pub wal_timeline: u32,
    /// Whether it began while the server was a standby.
    pub in_recovery: bool,
    /// Whether the incarnation began with this ledger, or has its number since then.
    is_new: bool,
    /// The start whose exit note the ledger continues from, and what it had used with that; 0 if there is none.
    given_back: (u32, Used),
    /// When it began, by the steady clock.
    born: i64,
    /// No stretch is opened before this instant by the steady clock: an old primary may go on.
    waits_until: i64,
    /// Before this instant nothing is known, so eras begin above it.
    known_since: i64,
    /// The time that is used.
    pub used: Used,
    /// Up to where horizons bind servers.
    pub bound: Bound,
    /// Horizons may have been announced up to this instant before it began, by this server.
    announced: i64,
    /// Whether horizons are asked for here.
    binds: bool,
    /// Whether a stretch is open.
    pub is_open: bool,
    /// How often the open stretch changed to time that does not follow it; progress made in another era does not count.
    pub era: u64,
    /// Between this instant and the end of the open stretch, nothing is used but by this era.
    pub floor: i64,
    from: i64,
    /// No generator uses a tick that starts at or after this instant until more time is granted.
    pub until: i64,
}

impl Ledger {
    /// Begins after a start or a promotion.
    pub fn begin(known: &Facts<'_>) -> Self {
        let of_file = known.file.filter(|(_, file)| file.wal_timeline == known.wal_timeline);
        let waits = of_file.is_some_and(|(_, file)| file.waits);
        let own = of_file.and_then(|(marks, file)| marks.of(file.node));
        let incarnation = own.map_or(known.chance.0, |own| own.by.incarnation);
        // Nobody has looked out for an old primary of this number yet.
        let is_renumbered = of_file.is_some_and(|(_, file)| file.node != known.node);
        let me = Writer { node: known.node, incarnation, start: known.chance.1 };
        let mut ledger = Self {
            me,
            wal_timeline: known.wal_timeline,
            in_recovery: known.in_recovery,
            is_new: own.is_none() || waits || is_renumbered,
            given_back: (0, Used::NONE),
            born: known.steady,
            waits_until: i64::MIN,
            known_since: if known.file.is_some() {
                i64::MIN
            } else {
                known.started_at.unwrap_or(known.now).saturating_add(1)
            },
            used: Used::NONE,
            bound: Bound::NONE,
            announced: i64::MIN,
            binds: false,
            is_open: false,
            era: known.era,
            floor: i64::MIN,
            from: i64::MIN,
            until: i64::MIN,
        };
        if waits {
            ledger.wait(known.now, known.steady);
        }
        let Some((marks, file)) = known.file else { return ledger };
        ledger.used = marks.concern(me, &ledger.given_back).used;
        ledger.bound = marks.bound;
        // This server's own announcements were granted; a note is not below them.
        if ledger.bound.incarnation == me.incarnation {
            ledger.announced = ledger.bound.instant;
        }
        if let (Some(own), Some(note)) = (own, file.exit_note)
            && own.by.node == known.node
            && Some(note.boot) == known.boot
        {
            ledger.given_back = (own.by.start, own.used);
            ledger.used = ledger.used.without(note.free_from, note.until);
            ledger.announced = ledger.announced.min(note.free_from);
        }
        ledger
    }

    /// Returns the ledger that has taken in what a page says. A stretch in which another server may have made IDs ends.
    #[must_use]
    pub fn with(&self, marks: &Marks, now: i64, steady: i64) -> Self {
        let mut new = *self;
        let concern = marks.concern(self.me, &self.given_back);
        let meets_another = self.is_new && concern.is_of_another && steady < self.born.saturating_add(MARGIN);
        if meets_another {
            new.wait(now, steady);
        }
        if self.is_open && (meets_another || concern.used.touches(self.floor, self.until)) {
            new.close();
        }
        new.used = self.used.united(&concern.used, now);
        new.bound = self.bound.united(marks.bound);
        if marks.bound.recalls > self.bound.recalls && (self.binds || self.bound.incarnation == self.me.incarnation) {
            // The file, restored or a copy, does not know of the recall, and this server may have announced again since then.
            new.bind_upto(self.bound.instant);
            new.announced = new.announced.max(self.announced());
        }
        // This incarnation's own bound counts where the file does not know of it, as it was restored; another one's counts also
        // below this one's.
        let is_known = marks.bound.incarnation == self.me.incarnation && new.bound == self.bound;
        if !is_known && marks.bound.recalls >= self.bound.recalls {
            new.announced = new.announced.max(marks.bound.instant);
        }
        new
    }

    /// Opens no stretch in its first seconds.
    fn wait(&mut self, now: i64, steady: i64) {
        self.waits_until = self.born.saturating_add(MARGIN);
        // Ticks that begin before may have been used.
        self.known_since = self.known_since.max(now.saturating_add(self.waits_until.saturating_sub(steady)));
    }

    fn close(&mut self) {
        self.is_open = false;
        self.era += 1;
    }

    /// Returns the ledger with time granted for a tick that holds `now` and ends at `tick_end`.
    ///
    /// # Errors
    /// The instant to wait for.
    pub fn granted(&self, now: i64, steady: i64, tick_end: i64) -> Result<Self, i64> {
        if self.is_waiting(steady) {
            return Err(self.opens_at(now, steady));
        }
        let mut new = *self;
        if self.is_open && now < self.until {
            if now < self.from {
                return Err(self.from);
            }
            let end = self.window().skip;
            if tick_end > end {
                return Err(self.used.accepted_after(end.saturating_sub(1)));
            }
            new.until = now.saturating_add(AHEAD).min(end).max(self.until);
            new.used = self.used.with(self.until, new.until, now);
        } else {
            let free = self.used.free_at(now).filter(|free| free.accepted);
            let free = free.ok_or_else(|| self.used.accepted_after(now))?;
            if tick_end > free.to {
                return Err(self.used.accepted_after(free.to.saturating_sub(1)));
            }
            // Where nothing was used since the open stretch ended, its era goes on.
            if !self.is_open || free.from != self.until {
                new.era += 1;
                new.floor = free.from.max(self.known_since.min(now.saturating_add(1)));
            }
            new.is_open = true;
            new.waits_until = i64::MIN;
            (new.from, new.until) = (now, now.saturating_add(AHEAD).min(free.to));
            new.used = self.used.leaving(now).with(new.from, new.until, now).forgetting(now, AHEAD + 2 * MARGIN);
        }
        new.bind();
        Ok(new)
    }

    /// Returns the ledger that counts `now`, which lies before the open stretch, as used, and the window around it. This is for
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
            new.used = self.used.with(now, now.saturating_add(AHEAD).min(gap.to), now);
        }
        let (from, until) = new.used.around(now);
        Ok((new, Window { from: from.max(self.floor), until: until.min(self.until), skip: self.window().skip }))
    }

    /// Returns the ledger that goes on at the present clock although later IDs, or horizons, exist; the same if nothing keeps it
    /// from that for longer than the open stretch lasts.
    #[must_use]
    pub fn accepted(&self, now: i64) -> Self {
        let mut new = *self;
        let is_present = self.is_open && self.from <= now && now < self.until;
        if is_present && self.announced() <= now {
            return new;
        }
        // Also of generators that have begun above a time that was not accepted. In a new era no ID is made before the page of
        // its database says that horizons were taken back.
        new.close();
        new.used = self.used.accepting(now);
        new.known_since = now;
        new.announced = self.announced.min(now);
        if self.bound.instant > now {
            new.bound = Bound { recalls: self.bound.recalls + 1, instant: now, incarnation: self.me.incarnation };
        }
        new
    }

    /// Returns the ledger that makes no ID in a tick that begins before an instant; the same if none does.
    #[must_use]
    pub fn above(&self, instant: i64) -> Self {
        let mut new = *self;
        if self.is_open && self.floor < instant {
            new.close();
        }
        new.used = self.used.united(&Used::before(instant), i64::MIN);
        new
    }

    /// Returns the ledger of a server on which horizons are asked for: what it grants binds other servers.
    #[must_use]
    pub fn binding(mut self) -> Self {
        self.binds = true;
        self.bind();
        self
    }

    fn bind(&mut self) {
        if self.binds && self.is_open {
            self.bind_upto(self.until);
        }
    }

    fn bind_upto(&mut self, instant: i64) {
        let own = Bound { instant, incarnation: self.me.incarnation, ..self.bound };
        self.bound = self.bound.united(own);
    }

    /// Returns the note that the last session leaves: of the open stretch, time from `free_from` on was not used.
    pub fn exit_note(&self, boot: u64, free_from: i64) -> Option<ExitNote> {
        // A tick that has begun before the stretch did is used as long as an instant of it is.
        let free_from = free_from.max(self.floor).max(self.from.saturating_add(1));
        self.is_open.then_some(ExitNote { boot, free_from, until: self.until })
    }

    /// This server's mark.
    pub const fn mark(&self) -> Mark {
        Mark { by: self.me, used: self.used }
    }

    /// Returns whether marks say all that this server has to say.
    pub fn is_in(&self, marks: &Marks) -> bool {
        let is_mine = |mark: &&Mark| mark.by == self.me && mark.used.contains(&self.used);
        marks.of(self.me.node).filter(is_mine).is_some()
            && (!self.binds || marks.bound.united(self.bound) == marks.bound)
    }

    /// Whether it has waited for an old primary, and has opened no stretch since.
    pub const fn waits(&self) -> bool {
        self.waits_until != i64::MIN
    }

    /// The time that generators may use without asking.
    pub fn window(&self) -> Window {
        if self.is_open { self.used.window(self.from, self.until) } else { Window::NONE }
    }

    /// Returns whether the server waits for an old primary.
    pub const fn is_waiting(&self, steady: i64) -> bool {
        steady < self.waits_until
    }

    /// Returns the first instant from `now` on at which a stretch can be opened.
    pub fn opens_at(&self, now: i64, steady: i64) -> i64 {
        self.next_free(now.saturating_add(self.waits_until.saturating_sub(steady).max(0)))
    }

    /// Returns an instant at `now` or below which no ID is made any more, whatever the clock says at the next start, and the
    /// ledger that binds other servers, and this one under another number, up to there.
    #[must_use]
    pub fn settled(&self, now: i64) -> (Self, i64) {
        let mut new = *self;
        if self.is_open {
            return (new, now.min(self.until));
        }
        let used_before = self.used.accepted_after(i64::MIN);
        let instant = now.min(used_before);
        if self.bound.instant < instant {
            // Not each question of a while costs a write.
            new.bind_upto(now.saturating_add(AHEAD).min(used_before));
        }
        (new, instant)
    }

    /// Up to this instant, horizons bind this server: another one's, or its own from before it began.
    pub fn announced(&self) -> i64 {
        if self.bound.incarnation == self.me.incarnation {
            self.announced
        } else {
            self.announced.max(self.bound.instant)
        }
    }

    /// Returns the first instant from `now` on at which a stretch can be open.
    pub fn next_free(&self, now: i64) -> i64 {
        match self.used.free_at(now) {
            _ if self.is_open && self.from <= now && now < self.until => now,
            Some(free) if free.accepted => now,
            _ => self.used.accepted_after(now),
        }
    }
}
