//! The pool: the part of a node's IDs that applications lease.
//!
//! The problem: an application, the lessee, makes IDs by itself. The server cannot stop it, and its clock may be wrong. Even so,
//! two lessees must never make the same ID.
//!
//! A lease is a worker in the ticks of a span of time, and of its sequence numbers the ones of the part. The bits of an ID show
//! whether it lies in a lease. So a wrong clock or a
//! pause costs a lessee IDs, never uniqueness. It remains to show that no tick of a worker is leased twice:
//!
//! 1. The pool has a ledger of its own. Its mark is in the file and in the page, as every part's mark is. The file does not list
//!    leases, because all their time lies below the mark.
//! 2. A lease ends in time that is on disk, in the page of its database.
//! 3. A lease ends at most [`LONGEST`] after the clock. After a restart on the same timeline, and without a file, the server grants
//!    none for [`WAIT`], so earlier leases have ended by then if the clock is right. After a promotion the part is another one, and
//!    nobody has leased any of it.
//! 4. A lease begins where the last lease of its worker ended. Shared memory keeps that end; after a start, the mark replaces it.

use super::marks::{Author, Mark, Marks};
use super::part_time::PartTime;
use super::used::Used;
use super::window::Window;
use crate::Numbers;
use crate::instant::{BEGINNING, NEVER};
use crate::layout::ticks::Ticks;

/// How long after the clock a lease may end, in microseconds.
pub const LONGEST: i64 = 60_000_000;
/// The length of a lessee's first lease. It is short, so that a program which restarts again and again does not use up the pool.
pub const FIRST: i64 = 10_000_000;
/// For how long no lease is granted after a restart.
pub const WAIT: i64 = LONGEST + 4_000_000;
/// How far ahead of the clock time is granted to the pool. After a restart, lessees may have to wait for the end of that time.
const AHEAD: i64 = LONGEST + 10_000_000;
/// If less than this is granted to the pool, it is granted more.
const LEAST: i64 = AHEAD - 5_000_000;
/// After how many microseconds at least a lessee should ask again.
const SOON: i64 = 100_000;
/// How many leases can exist at once.
pub const MOST_LEASES: usize = 1024;

/// The session that a lease was granted to.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// The role that the session has connected as.
    pub role: u32,
    /// Its application_name, padded with zeros.
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
    /// The instant at which the lease ends. An entry without a lease has [`BEGINNING`].
    pub until: i64,
    /// When the lessee's first lease was granted.
    pub since: i64,
    era: u64,
    /// The session that it was granted to.
    pub by: Holder,
}

impl Lease {
    /// An entry without a lease.
    pub const NONE: Self = Self {
        key: 0,
        worker: 0,
        database: 0,
        until: BEGINNING,
        since: 0,
        era: 0,
        by: Holder { role: 0, application: [0; 64] },
    };

    /// The era of the pool's ledger in which it was granted.
    pub const fn era(&self) -> u64 {
        self.era
    }
}

impl Default for Lease {
    fn default() -> Self {
        Self::NONE
    }
}

/// A lessee's request for a lease.
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
    /// The session that asks.
    pub by: Holder,
}

/// The decision on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The worker belongs to the lessee in the ticks from `from` to before `to`.
    Granted {
        /// The number in the layout's worker bits.
        worker: u32,
        /// The first tick of the lease.
        from: u64,
        /// The first tick after the lease.
        to: u64,
        /// When the tick `to` begins.
        until: i64,
    },
    /// No lease can be granted now. The lessee should ask again after this many microseconds.
    Wait(i64),
    /// The lease to renew has been renewed already, or the worker belongs to another lessee by now.
    Lost,
    /// All workers that this database may have are leased. One of them is free from this instant on.
    Exhausted(i64),
    /// There are [`MOST_LEASES`] leases already.
    Full,
}

/// The state of the pool, in shared memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// The writer of the mark of the lessees' part.
    me: Author,
    /// The time of that part.
    pub time: PartTime,
    /// No lease is granted before this instant of the steady clock.
    opens_at: i64,
}

impl Pool {
    /// Begins the pool of a part. It grants no lease before `opens_at` by the steady clock, and none below `above`.
    pub fn begin(me: Author, above: i64, opens_at: i64, file: Option<&Marks>) -> Self {
        let used = file.map_or(Used::NONE, |marks| marks.used_for(me, None));
        let above = file.map_or(above, |marks| marks.above.max(above));
        Self { me, time: PartTime::begin(used, above, BEGINNING), opens_at }
    }

    /// The mark of the lessees' part.
    pub const fn mark(&self) -> Mark {
        Mark { by: self.me, used: self.time.used }
    }

    /// Returns the pool after it has read a page.
    #[must_use]
    pub fn having_read(self, marks: &Marks) -> Self {
        Self { time: self.time.having_read(&marks.used_for(self.me, None), marks.above), ..self }
    }

    /// Returns the pool with the clock accepted: it leases from the current instant on although later leases exist.
    #[must_use]
    pub fn accepted(self, now: i64) -> Self {
        if self.time.is_open_at(now) { self } else { Self { time: self.time.accepted(now), ..self } }
    }

    /// Returns the pool raised above an instant: it grants no lease before that.
    #[must_use]
    pub fn starting_above(self, instant: i64) -> Self {
        Self { time: self.time.starting_above(instant), ..self }
    }

    /// Returns whether marks contain the pool's mark. A pool without granted time has nothing to add to them.
    pub fn is_in(&self, marks: &Marks, now: i64) -> bool {
        let has_time = self.time.window.is_some_and(|open| now < open.until);
        !has_time || marks.have(&self.mark())
    }

    /// Returns the pool with more time, if it has too little for a lease.
    ///
    /// # Errors
    /// After how many microseconds to try again.
    pub fn extended(self, now: i64, steady: i64) -> Result<Self, i64> {
        if steady < self.opens_at {
            return Err(self.opens_at - steady);
        }
        let suffices = |open: Window| now.saturating_add(LEAST).min(open.skip) <= open.until;
        if self.time.is_open_at(now) && self.time.window.is_some_and(suffices) {
            return Ok(self);
        }
        let granted = self.time.granted(now, now.saturating_add(1), AHEAD);
        granted.map(|time| Self { time, ..self }).map_err(|until| until.saturating_sub(now))
    }

    /// Decides on a request, and stores the lease. The page of the request's database contains the mark that the pool had `then`.
    pub fn lease(&self, leases: &mut [Lease], request: &Request, now: i64, then: &Self) -> Decision {
        let PartTime { window: Some(window), floor, era, .. } = self.time else { return Decision::Wait(SOON) };
        let of_layout = |lease: &Lease| lease.era == era && lease.key == request.key;
        let (worker, since) = match request.last {
            None => match free_worker(leases.iter().filter(|lease| of_layout(lease)), request, now) {
                Ok(worker) => (worker, now),
                Err(until) => return Decision::Exhausted(until),
            },
            Some((worker, until)) => {
                let is_it = |lease: &&Lease| {
                    of_layout(lease) && (lease.worker, lease.until, lease.database) == (worker, until, request.database)
                };
                let Some(lease) = leases.iter().find(is_it) else { return Decision::Lost };
                (worker, lease.since)
            }
        };
        let own = leases.iter().position(|lease| of_layout(lease) && lease.worker == worker);
        let last = own.map_or(BEGINNING, |at| leases[at].until);
        // The floor is at most a microsecond after the window begins. It is here so that nobody has to rely on that.
        let from = now.max(last).max(floor).max(window.from);
        let known = if then.time.era == era { then.time.until() } else { BEGINNING };
        let longest = if request.last.is_some() { LONGEST } else { FIRST };
        let until = now.saturating_add(longest).min(known).min(window.until);
        let Some((first, end)) = ticks(request.ticks, (from, until), window.skip) else {
            return Decision::Wait((from.saturating_sub(now) - longest).max(SOON));
        };
        let until = request.ticks.start_of(end);
        // A lease of another era gives way first, then the one that ends first. So if the clock goes back to before that end, every
        // entry holds a lease that has not ended, none gives way, and the worker is not leased again.
        let is_free = |lease: &Lease| lease.until <= now || lease.era != era;
        let order = |at: &usize| (leases[*at].era == era, leases[*at].until);
        let free = || (0..leases.len()).filter(|&at| is_free(&leases[at])).min_by_key(order);
        let Some(at) = own.or_else(free) else { return Decision::Full };
        let Request { key, database, by, .. } = *request;
        leases[at] = Lease { key, worker, database, until, since, era, by };
        Decision::Granted { worker, from: first, to: end, until }
    }
}

/// Returns the worker that has been free for longest.
///
/// # Errors
/// When the first worker will be free.
fn free_worker<'a>(leases: impl Iterator<Item = &'a Lease>, request: &Request, now: i64) -> Result<u32, i64> {
    let Numbers { first, count } = request.workers;
    let mut known: Vec<&Lease> = leases.collect();
    known.sort_unstable_by_key(|lease| lease.worker);
    // A database gets half of the workers, so that others find some too.
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

/// Returns the ticks that begin in a span of free time and end before `skip`: the first one, and the first one after them.
fn ticks(ticks: Ticks, (from, until): (i64, i64), skip: i64) -> Option<(u64, u64)> {
    let (first, end) = (ticks.since(from)?, ticks.since(until)?);
    let end = if skip == NEVER { end } else { end.min(ticks.until(skip)?) };
    (first < end).then_some((first, end))
}
