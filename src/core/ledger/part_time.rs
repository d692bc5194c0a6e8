//! The time of a part: what is used, and the window in which its IDs are made now. This file only computes; the
//! [`protocol`](super::protocol) reads and writes.

use super::note::ExitNote;
use super::used::Used;
use super::window::Window;

/// How far ahead of the clock time is granted to sessions, in microseconds. A crash can cost that much time.
pub const AHEAD: i64 = 3_000_000;
/// How far ahead of the clock no restart and no failover explains that a time was used, in microseconds.
pub const FAR: i64 = AHEAD + 2_000_000;

/// The time of a part, in plain numbers.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartTime {
    /// All time that counts as used, which the part's mark says.
    pub used: Used,
    /// The instant that flake_start_above was given: no tick is used that begins before it.
    pub above: i64,
    /// How often the window moved to time that does not follow it. Progress of another era does not count.
    pub era: u64,
    /// No other era has made IDs between this instant and the end of the window. An era without a window leaves the instant above which
    /// the next era begins.
    pub floor: i64,
    /// The granted time, in which IDs are made now.
    pub window: Option<Window>,
}

impl PartTime {
    /// Begins with what is used, and with the argument of flake_start_above. Nothing is known of the time before `known_since`.
    pub fn begin(used: Used, above: i64, known_since: i64) -> Self {
        Self { used: used.united(&Used::before(above)), above, era: 0, floor: known_since, window: None }
    }

    /// The end of the window; if there is none, the end of all used time.
    pub fn until(&self) -> i64 {
        self.window.map_or(self.used.until(), |open| open.until)
    }

    /// Returns the time after it has read the marks of a page: what they say is used, and the argument of flake_start_above. If IDs may
    /// have been made in the window before, the window is closed.
    #[must_use]
    pub fn having_read(&self, found: &Used, above: i64) -> Self {
        let mut new = *self;
        if self.window.is_some_and(|open| found.touches(self.floor, open.until)) {
            new.close();
        }
        new.count(self.used.united(found));
        new.starting_above(above)
    }

    /// Replaces the used time by a set that contains it. The next used time may begin nearer to the window.
    fn count(&mut self, used: Used) {
        self.used = used;
        self.window = self.window.map(|open| used.window(open.from, open.until));
    }

    fn close(&mut self) {
        self.window = None;
        self.era += 1;
    }

    /// Returns the time without ticks that begin before an instant.
    #[must_use]
    pub fn starting_above(&self, instant: i64) -> Self {
        let mut new = *self;
        if self.window.is_some() && self.floor < instant {
            new.close();
        }
        new.above = self.above.max(instant);
        new.count(self.used.united(&Used::before(instant)));
        new
    }

    /// Returns the time with a window for a tick that contains `now` and ends at `tick_end`. The window ends at most [`AHEAD`] after the
    /// clock.
    ///
    /// # Errors
    /// The instant to wait for.
    pub fn granted(&self, now: i64, tick_end: i64) -> Result<Self, i64> {
        let mut new = *self;
        let until = now.saturating_add(AHEAD);
        if let Some(open) = self.window.filter(|open| now < open.until) {
            if now < open.from {
                return Err(open.from);
            }
            if tick_end > open.skip {
                return Err(self.used.accepted_after(open.skip.saturating_sub(1)));
            }
            let until = until.min(open.skip).max(open.until);
            new.window = Some(Window { until, ..open });
            new.count(self.used.with(open.until, until));
            return Ok(new);
        }
        let free = self.used.free_at(now).filter(|free| free.accepted);
        let free = free.ok_or_else(|| self.used.accepted_after(now))?;
        if tick_end > free.to {
            return Err(self.used.accepted_after(free.to.saturating_sub(1)));
        }
        // If nothing was used since the last window ended, the era continues.
        if self.window.is_none_or(|open| open.until != free.from) {
            new.era += 1;
            new.floor = free.from.max(self.floor.min(now.saturating_add(1)));
        }
        let until = until.min(free.to);
        new.window = Some(Window { from: now, until, skip: free.to });
        new.count(self.used.leaving(now).with(now, until).forgetting(now, AHEAD + FAR));
        Ok(new)
    }

    /// Returns the time that counts `now` as used, which lies before the window, and the used time around it as a window. It serves
    /// generators that go back in time, which know what they have used there in this era.
    ///
    /// # Errors
    /// The instant to wait for.
    pub fn gone_back(&self, now: i64) -> Result<(Self, Window), i64> {
        let open = self.window.filter(|_| now >= self.floor).ok_or(self.floor)?;
        let mut new = *self;
        if let Some(gap) = self.used.free_at(now) {
            new.count(self.used.with(now, now.saturating_add(AHEAD).min(gap.to)));
        }
        let (from, until) = new.used.around(now);
        Ok((new, Window { from: from.max(self.floor), until: until.min(open.until), skip: open.skip }))
    }

    /// Returns the time with the clock accepted although later IDs exist. No ID of the new era lies in a tick that began before, and
    /// generators of an earlier era stop.
    #[must_use]
    pub fn accepted(&self, now: i64) -> Self {
        let mut new = *self;
        new.close();
        new.floor = now;
        new.count(self.used.accepting(now));
        new
    }

    /// Returns the exit note of the last session: time of the window from `free_from` on was not used.
    pub fn exit_note(&self, boot: u64, free_from: i64) -> Option<ExitNote> {
        let open = self.window?;
        // The tick that was running when the window opened counts as used up to its end, so at least one instant of the window
        // stays used.
        let free_from = free_from.max(self.floor).max(open.from.saturating_add(1));
        Some(ExitNote { boot, free_from, until: open.until })
    }

    /// Returns the used time that the clock and the window will meet, in order: what a clock that was ahead has used.
    pub fn used_ahead(&self, now: i64) -> Vec<(i64, i64)> {
        self.used.after(self.window.map_or(now, |open| open.until.max(now)))
    }

    /// Returns whether the window contains an instant.
    pub fn is_open_at(&self, now: i64) -> bool {
        self.window.is_some_and(|open| open.from <= now && now < open.until)
    }

    /// Returns the first instant from `now` on at which a window is or can be open.
    pub fn next_free(&self, now: i64) -> i64 {
        match self.window {
            Some(open) if now < open.until => now.max(open.from),
            _ if self.used.free_at(now).is_some_and(|free| free.accepted) => now,
            _ => self.used.accepted_after(now),
        }
    }

    /// Returns the first instant from `now` on for which an ID can be made. Before the window, generators that go back in time make
    /// them.
    pub fn next_made(&self, now: i64) -> i64 {
        match self.window {
            Some(open) if now < open.from => now.max(self.floor),
            _ => self.next_free(now),
        }
    }
}
