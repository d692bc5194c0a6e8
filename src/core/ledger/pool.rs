//! The pool: a node's number without a server, whose workers applications lease for a while.
//!
//! A lessee makes IDs by itself: of its worker, in the ticks of its lease. An ID belongs to it by its own bits, so a lessee need not
//! be stopped in time, and a wrong clock costs it IDs, never uniqueness. The steps that make it so:
//!
//! 1. The pool has a ledger of its own, whose mark is in file and page like that of any node. So it binds whoever uses the number
//!    later. Lessees are not listed there: all their time lies below the mark.
//! 2. A lease relies on time that this server has flushed into the page of its database two seconds before. What is lost when a
//!    standby is promoted is at most the last two seconds, so the standby knows the mark.
//! 3. A lease ends at most [`LONGEST`] after the clock. After a start or a promotion, none is granted for [`WAIT`]. So where more
//!    than two seconds are lost, earlier leases are over if the clocks are right.
//! 4. A lease begins where the last one of its worker has ended. Shared memory keeps that. After a start, the mark stands for it.

use super::marks::{MARGIN, Marks};
use super::state::Ledger;
use super::window::Window;
use crate::layout::ticks::Ticks;
use crate::share::Numbers;

/// How long after the clock a lease may end, in microseconds.
pub const LONGEST: i64 = 60_000_000;
/// How long the first lease of a lessee lasts: a program that starts again and again does not use up the pool.
pub const FIRST: i64 = 10_000_000;
/// How long no lease is granted after a start or a promotion.
pub const WAIT: i64 = LONGEST + 2 * MARGIN;
/// How far ahead of the clock time is granted to the pool. A restart can cost lessees what is longer than a lease.
const AHEAD: i64 = LONGEST + 10_000_000;
/// When less than this is granted to the pool, it is granted more, which takes effect two seconds later.
const LEAST: i64 = AHEAD - 5_000_000;
/// How many leases there can be at once.
pub const MOST_LEASES: usize = 1024;
/// How many databases lease at once without waiting for two seconds more.
const DATABASES: usize = 8;

/// Who has a lease.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// The role that its session has connected as.
    pub role: u32,
    /// Its application_name, with zeros after it.
    pub application: [u8; 64],
}

/// A lease, as shared memory keeps it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The key of the layout.
    pub key: u64,
    /// The number in the layout's worker bits.
    pub worker: u32,
    /// The database that the IDs go into.
    pub database: u32,
    /// The end; [`i64::MIN`] where there is no lease.
    pub until: i64,
    /// When the lessee's first one was granted.
    pub since: i64,
    era: u64,
    /// Who has it.
    pub by: Holder,
}

impl Lease {
    /// No lease.
    pub const NONE: Self = Self {
        key: 0,
        worker: 0,
        database: 0,
        until: i64::MIN,
        since: 0,
        era: 0,
        by: Holder { role: 0, application: [0; 64] },
    };

    /// The pool's era in which it was granted.
    pub const fn era(&self) -> u64 {
        self.era
    }
}

impl Default for Lease {
    fn default() -> Self {
        Self::NONE
    }
}

/// A lessee asks for a lease.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The key of the layout.
    pub key: u64,
    /// How the layout divides time.
    pub ticks: Ticks,
    /// The pool's workers in that layout.
    pub workers: Numbers,
    /// The database that the IDs go into.
    pub database: u32,
    /// The worker and the end of the lease that is renewed.
    pub last: Option<(u32, i64)>,
    /// Who asks.
    pub by: Holder,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The worker is the lessee's in the ticks from one to before another, which begins at `until`.
    Granted {
        /// The number in the layout's worker bits.
        worker: u32,
        /// The first tick.
        from: u64,
        /// The first tick after it.
        to: u64,
        /// When that begins.
        until: i64,
    },
    /// None can be granted now; it is worth asking again after so many microseconds.
    Wait(i64),
    /// The lease was renewed by somebody else, or the worker is another lessee's by now.
    Lost,
    /// All workers that this database may have are leased; one is free at this instant.
    Exhausted(i64),
    /// There are [`MOST_LEASES`].
    Full,
}

/// How far the pages of a database reach.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reach {
    database: u32,
    /// It has been in the page for two seconds that the pool's time is granted up to here.
    known: i64,
    /// It has been in the page since `flushed_at`, by the steady clock, that it is up to here.
    flushed: i64,
    flushed_at: i64,
}

impl Reach {
    const NONE: Self = Self { database: 0, known: i64::MIN, flushed: i64::MIN, flushed_at: i64::MIN };

    fn known(&self, steady: i64) -> i64 {
        if steady >= self.flushed_at.saturating_add(MARGIN) { self.flushed } else { self.known }
    }
}

/// The state of the pool, in shared memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    ledger: Ledger,
    reaches: [Reach; DATABASES],
}

impl Pool {
    /// Begins after a start or a promotion. `server` is the server's own ledger.
    pub fn begin(node: (u32, u32), server: &Ledger, file: Option<&Marks>) -> Self {
        let ledger = server.of_another(node, AHEAD, WAIT, file);
        Self { ledger, reaches: [Reach::NONE; DATABASES] }
    }

    /// The pool's ledger, which says what its mark is.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the pool with another ledger. Time of another era is used time for this one, so its leases and pages do not matter.
    #[must_use]
    fn with(self, ledger: Ledger) -> Self {
        if ledger.era == self.ledger.era {
            Self { ledger, ..self }
        } else {
            Self { ledger, reaches: [Reach::NONE; DATABASES] }
        }
    }

    /// Returns the pool that has taken in what a page says.
    #[must_use]
    pub fn having_read(self, marks: &Marks, now: i64, steady: i64) -> Self {
        let mut ledger = self.ledger.having_read(marks, now, steady);
        // Nothing here holds a horizon.
        ledger.horizons = self.ledger.horizons;
        self.with(ledger)
    }

    /// Returns the pool that continues at the current clock although later leases exist.
    #[must_use]
    pub fn accepted(self, now: i64) -> Self {
        self.with(self.ledger.accepted(now))
    }

    /// Returns the pool that grants no lease before an instant.
    #[must_use]
    pub fn starting_above(self, instant: i64) -> Self {
        self.with(self.ledger.starting_above(instant))
    }

    /// Returns whether marks say all that the pool has to say; of a pool that nobody uses, nothing.
    pub fn is_in(&self, marks: &Marks, now: i64) -> bool {
        self.ledger.window.until <= now || self.ledger.is_in(marks)
    }

    /// Returns the pool with more time, if the page of a database lacks it.
    ///
    /// # Errors
    /// For how many microseconds there is none.
    pub fn extended(self, database: u32, now: i64, steady: i64) -> Result<Self, i64> {
        if self.reaches(database, now) {
            return Ok(self);
        }
        match self.ledger.granted(now, steady, now.saturating_add(1)) {
            Ok(ledger) => Ok(self.with(ledger)),
            Err(until) => Err(until.saturating_sub(now)),
        }
    }

    /// Returns whether the page of a database says that time enough is granted.
    pub fn reaches(&self, database: u32, now: i64) -> bool {
        let Window { from, until, skip } = self.ledger.window;
        let least = now.saturating_add(LEAST).min(skip);
        from <= now && now < until && self.reach(database).is_some_and(|reach| reach.flushed >= least)
    }

    fn reach(&self, database: u32) -> Option<&Reach> {
        self.reaches.iter().find(|reach| reach.database == database && reach.flushed > i64::MIN)
    }

    /// Notes that the page of a database says what the pool, as it was then, has to say.
    pub fn note(&mut self, database: u32, then: &Self, steady: i64) {
        let until = then.ledger.window.until;
        if then.ledger.era != self.ledger.era {
            return;
        }
        let at = self.reaches.iter().position(|reach| reach.database == database).unwrap_or_else(|| {
            let oldest = (0..DATABASES).min_by_key(|&at| self.reaches[at].flushed_at).unwrap_or(0);
            self.reaches[oldest] = Reach { database, ..Reach::NONE };
            oldest
        });
        let reach = &mut self.reaches[at];
        reach.known = reach.known(steady);
        // The two seconds would never be over if each extension began them anew.
        if reach.known == reach.flushed && until > reach.flushed {
            (reach.flushed, reach.flushed_at) = (until, steady);
        }
    }

    /// Forgets what a page was noted to say that does not say it any more, as after DROP EXTENSION.
    pub fn check(&mut self, database: u32, marks: &Marks) {
        let me = self.ledger.me;
        let says = marks.of(me.node).filter(|mark| mark.by == me).map_or(i64::MIN, |mark| mark.times.own.until());
        for reach in &mut self.reaches {
            if reach.database == database && says < reach.flushed.max(reach.known) {
                *reach = Reach::NONE;
            }
        }
    }

    /// Decides about a request, and keeps the lease.
    pub fn lease(&self, leases: &mut [Lease], request: &Request, now: i64, steady: i64) -> Answer {
        let Ledger { window, floor, era, .. } = self.ledger;
        let of_layout = |lease: &Lease| lease.until > i64::MIN && lease.era == era && lease.key == request.key;
        let (worker, since) = match request.last {
            None => match free_worker(leases.iter().filter(|lease| of_layout(lease)), request, now) {
                Ok(worker) => (worker, now),
                Err(until) => return Answer::Exhausted(until),
            },
            Some((worker, until)) => {
                let is_it = |lease: &&Lease| {
                    of_layout(lease) && (lease.worker, lease.until, lease.database) == (worker, until, request.database)
                };
                let Some(lease) = leases.iter().find(is_it) else { return Answer::Lost };
                (worker, lease.since)
            }
        };
        let own = leases.iter().position(|lease| of_layout(lease) && lease.worker == worker);
        let last = own.map_or(i64::MIN, |at| leases[at].until);
        let from = now.max(last).max(floor).max(window.from);
        let reach = self.reach(request.database);
        let known = reach.map_or(i64::MIN, |reach| reach.known(steady));
        let longest = if request.last.is_some() { LONGEST } else { FIRST };
        let until = now.saturating_add(longest).min(known).min(window.until);
        let Some((first, end)) = ticks(request.ticks, (from, until), window.skip) else {
            let is_on_the_way = known < now.saturating_add(longest) && reach.is_some();
            let at = reach.map_or(steady, |reach| reach.flushed_at.saturating_add(MARGIN));
            let wait = if is_on_the_way { at.saturating_sub(steady) } else { from.saturating_sub(now) - longest };
            return Answer::Wait(wait.max(MARGIN / 20));
        };
        let until = request.ticks.start_of(end);
        // Of this era's, the first to end gives way. So if the clock goes back to before its end, no other one gives way either, and
        // its worker is not leased again.
        let is_free = |lease: &Lease| lease.until <= now || lease.era != era;
        let order = |at: &usize| (leases[*at].era == era, leases[*at].until);
        let free = || (0..leases.len()).filter(|&at| is_free(&leases[at])).min_by_key(order);
        let Some(at) = own.or_else(free) else { return Answer::Full };
        let Request { key, database, by, .. } = *request;
        leases[at] = Lease { key, worker, database, until, since, era, by };
        Answer::Granted { worker, from: first, to: end, until }
    }
}

/// Returns the worker that has been free for longest.
///
/// # Errors
/// There is none; when there will be one.
fn free_worker<'a>(leases: impl Iterator<Item = &'a Lease>, request: &Request, now: i64) -> Result<u32, i64> {
    let Numbers { first, count } = request.workers;
    let mut known: Vec<&Lease> = leases.collect();
    known.sort_unstable_by_key(|lease| lease.worker);
    // Half, so that one database leaves workers to others.
    let own = || known.iter().filter(|lease| lease.database == request.database && lease.until > now);
    if own().count() as u64 >= (count / 2).max(1) {
        return Err(own().map(|lease| lease.until).min().unwrap_or(now));
    }
    let unknown = (first..first + count).zip(known.iter().map(|lease| u64::from(lease.worker)).chain([u64::MAX]));
    if let Some((worker, _)) = unknown.into_iter().find(|(worker, known)| worker != known) {
        return Ok(worker as u32);
    }
    match known.iter().min_by_key(|lease| lease.until) {
        Some(lease) if lease.until > now => Err(lease.until),
        Some(lease) => Ok(lease.worker),
        None => Ok(first as u32),
    }
}

/// Returns the ticks that begin in a span, and end before used time; the first, and the first one after them.
fn ticks(ticks: Ticks, (from, until): (i64, i64), skip: i64) -> Option<(u64, u64)> {
    let (first, end) = (ticks.since(from)?, ticks.since(until)?);
    let end = if skip == i64::MAX { end } else { end.min(ticks.until(skip)?) };
    (first < end).then_some((first, end))
}
