//! The pool: the part of a node's IDs that applications lease.
//!
//! The problem: an application, the lessee, makes IDs by itself. The server cannot stop it, and its clock may be wrong. Even so,
//! two lessees must never make the same ID.
//!
//! A lease is a [lot](crate::Lots) of the part in the ticks of a span of time. The bits of an ID show whether it lies in a lease. So a
//! wrong clock or a pause costs a lessee IDs, never uniqueness. It remains to show that no tick of a lot is leased twice:
//!
//! 1. The pool has a ledger of its own. Its mark is in the file and in the page, as every part's mark is. The file does not list
//!    leases, because all their time lies below the mark.
//! 2. A lease ends in time that is on disk, in the page of its database. So after a restart leases begin above all earlier ones. After
//!    a promotion the part is another one, and nobody has leased any of it.
//! 3. A lease begins where the last lease of its lot ended. Shared memory keeps that end. Once the entry of an ended lease gives way to
//!    another lot's, the pool keeps the latest end of those, and lots without an entry begin above it.
//! 4. A lease ends at most [`LONGEST`] after the clock, so that the wait after a restart is short.
//! 5. Each grant and each renewal draws a token, which renews or releases the lease once. The answer to it is not repeated: two copies
//!    of a process would both make IDs by it.

use super::marks::{Author, Mark, Marks};
use super::part_time::PartTime;
use super::used::Used;
use super::window::Window;
use crate::Lots;
use crate::instant::{BEGINNING, NEVER};
use crate::layout::ticks::Ticks;

/// How long after the clock a lease may end, in microseconds.
pub const LONGEST: i64 = 60_000_000;
/// The length of a lessee's first lease. It is short, so that a program which restarts again and again does not use up the pool.
pub const FIRST: i64 = 10_000_000;
/// How far ahead of the clock time is granted to the pool. After a restart, lessees may have to wait for the end of that time.
pub const AHEAD: i64 = LONGEST + 10_000_000;
/// If less than this is granted to the pool, it is granted more.
const LEAST: i64 = AHEAD - 5_000_000;
/// After how many microseconds at least a lessee should ask again.
const SOON: i64 = 100_000;
/// How many leases can exist at once.
pub const MOST_LEASES: usize = 4096;

/// The session that a lease was granted to. Texts are padded with zeros.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// The role that the session has connected as.
    pub role: u32,
    /// The process that serves it.
    pub pid: i32,
    /// The address of its client; empty for a local socket.
    pub address: [u8; 40],
    /// Its application_name.
    pub application: [u8; 64],
}

impl Holder {
    /// No session.
    pub const NOBODY: Self = Self { role: 0, pid: 0, address: [0; 40], application: [0; 64] };
}

/// A lease, as shared memory keeps it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The key of the layout.
    pub key: u64,
    /// The number in the layout's worker bits.
    pub worker: u64,
    /// The number of the lot.
    lot: u64,
    /// A random number that renews or releases it once; 0 after its release.
    token: u64,
    era: u64,
    /// The database that the IDs go into.
    pub database: u32,
    /// The instants at which the lessee's first grant begins, at which its last one begins, and at which the lease ends. An entry
    /// without a lease has [`BEGINNING`].
    first: i64,
    from: i64,
    pub until: i64,
    /// When the lessee's first lease was granted.
    pub since: i64,
    /// The session that it was granted to.
    pub by: Holder,
}

impl Lease {
    /// An entry without a lease.
    pub const NONE: Self = Self {
        key: 0,
        worker: 0,
        lot: 0,
        token: 0,
        era: 0,
        database: 0,
        first: BEGINNING,
        from: BEGINNING,
        until: BEGINNING,
        since: 0,
        by: Holder::NOBODY,
    };
}

impl Default for Lease {
    fn default() -> Self {
        Self::NONE
    }
}

/// Which lease a lessee means: the token of the last answer, in a layout and a database.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// The key of the layout.
    pub key: u64,
    /// The database.
    pub database: u32,
    /// The token.
    pub token: u64,
}

/// A lessee's request for a lease.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The key of the layout.
    pub key: u64,
    /// How the layout divides time.
    pub ticks: Ticks,
    /// The lots of the layout.
    pub lots: Lots,
    /// The database that the IDs go into.
    pub database: u32,
    /// How many leases the database can have.
    pub most: usize,
    /// The token of the lease that is renewed.
    pub token: Option<u64>,
    /// The session that asks.
    pub by: Holder,
}

/// Why no lease is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Leases of an earlier start may last.
    Starting,
    /// The clock is behind granted time.
    Clock,
    /// All lots that the database may have are leased.
    Exhausted,
    /// The database has as many leases as its limit allows.
    Limited,
    /// There are [`MOST_LEASES`] leases.
    Full,
    /// The token was used, or its lease is not known any more.
    Lost,
}

impl Refusal {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] = [Self::Starting, Self::Clock, Self::Exhausted, Self::Limited, Self::Full, Self::Lost];

    /// Its name in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Clock => "clock",
            Self::Exhausted => "exhausted",
            Self::Limited => "limited",
            Self::Full => "full",
            Self::Lost => "lost",
        }
    }
}

/// The decision on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The lot belongs to the lessee in the ticks from `from` to before `to`.
    Granted {
        /// The number of the lot.
        lot: u64,
        /// A random number that renews or releases the lease once.
        token: u64,
        /// The first tick of the lease.
        from: u64,
        /// The first tick after the lease.
        to: u64,
        /// When the tick `to` begins.
        until: i64,
    },
    /// There is no lease now. It is worth asking again after this many microseconds.
    Refused(Refusal, i64),
}

/// The state of the pool, in shared memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// The writer of the mark of the lessees' part.
    me: Author,
    /// The time of that part.
    pub time: PartTime,
    /// An era, and the latest end of its leases whose entries gave way to others.
    forgotten: (u64, i64),
}

impl Pool {
    /// Begins the pool of a part. It grants no lease below `above`.
    pub fn begin(me: Author, above: i64, file: Option<&Marks>) -> Self {
        let used = file.map_or(Used::NONE, |marks| marks.used_for(me, None));
        Self { me, time: PartTime::begin(used, above, BEGINNING), forgotten: (0, BEGINNING) }
    }

    /// The mark of the lessees' part, once time was granted to the pool.
    pub fn mark(&self) -> Option<Mark> {
        (self.time.era > 0).then_some(Mark { by: self.me, used: self.time.used })
    }

    /// Returns the pool after it has read a page.
    #[must_use]
    pub fn having_read(self, marks: &Marks) -> Self {
        Self { time: self.time.having_read(&marks.used_for(self.me, None), marks.above), ..self }
    }

    /// Returns the pool with the clock accepted: it leases from the current instant on although later leases exist.
    #[must_use]
    pub fn accepted(self, now: i64) -> Self {
        if self.time.next_free(now) == now { self } else { Self { time: self.time.accepted(now), ..self } }
    }

    /// Returns the pool raised above an instant: it grants no lease before that.
    #[must_use]
    pub fn starting_above(self, instant: i64) -> Self {
        Self { time: self.time.starting_above(instant), ..self }
    }

    /// Returns whether marks contain the pool's mark. A pool without granted time has nothing to add to them.
    pub fn is_in(&self, marks: &Marks, now: i64) -> bool {
        let has_time = self.time.window.is_some_and(|open| now < open.until);
        !has_time || self.mark().is_none_or(|mark| marks.have(&mark))
    }

    /// Returns the pool with more time, if it has too little for a lease.
    ///
    /// # Errors
    /// The refusal of every request.
    pub fn extended(self, now: i64) -> Result<Self, Decision> {
        let suffices = |open: Window| now.saturating_add(LEAST).min(open.skip) <= open.until;
        if self.time.is_open_at(now) && self.time.window.is_some_and(suffices) {
            return Ok(self);
        }
        let granted = self.time.granted(now, now.saturating_add(1), AHEAD);
        granted.map(|time| Self { time, ..self }).map_err(|until| {
            let wait = until.saturating_sub(now);
            let is_of_start = self.time.era == 0 && wait <= AHEAD;
            Decision::Refused(if is_of_start { Refusal::Starting } else { Refusal::Clock }, wait.max(SOON))
        })
    }

    /// Decides on a request, and stores the lease with a new token. The page of the request's database contains the mark that the pool
    /// had `then`.
    pub fn lease(&mut self, leases: &mut [Lease], request: &Request, now: i64, new: u64, then: &Self) -> Decision {
        let clock = |wait: i64| Decision::Refused(Refusal::Clock, wait.max(SOON));
        let PartTime { window: Some(window), floor, era, .. } = self.time else { return clock(SOON) };
        let own = match request.token {
            None => None,
            Some(token) => match self.find(leases, request.claim(token)) {
                Some(at) => Some(at),
                None => return Decision::Refused(Refusal::Lost, 0),
            },
        };
        let lasting = |lease: &&Lease| lease.era == era && lease.until > now;
        let others = || leases.iter().filter(lasting).filter(|lease| Some(lease.token) != request.token);
        let until_one_ends = |refusal, until: Option<i64>| {
            Decision::Refused(refusal, until.map_or(FIRST, |until| until.saturating_sub(now).max(SOON)))
        };
        let of_database = || others().filter(|lease| lease.database == request.database);
        if of_database().count() >= request.most {
            return until_one_ends(Refusal::Limited, of_database().map(|lease| lease.until).min());
        }
        let of_layout = |lease: &Lease| lease.era == era && lease.key == request.key;
        let (lot, since) = match own {
            Some(at) => (leases[at].lot, leases[at].since),
            None => match free_lot(leases.iter().filter(|lease| of_layout(lease)), request, now) {
                Ok(lot) => (lot, now),
                Err(until) => return until_one_ends(Refusal::Exhausted, Some(until)),
            },
        };
        let own = own.or_else(|| leases.iter().position(|lease| of_layout(lease) && lease.lot == lot));
        let forgotten = if self.forgotten.0 == era { self.forgotten.1 } else { BEGINNING };
        let last = own.map_or(forgotten, |at| leases[at].until);
        // The floor is at most a microsecond after the window begins. It is here so that nobody has to rely on that.
        let from = now.max(last).max(floor).max(window.from);
        let known = if then.time.era == era { then.time.until() } else { BEGINNING };
        let longest = if request.token.is_some() { LONGEST } else { FIRST };
        let until = now.saturating_add(longest).min(known).min(window.until);
        let Some((first, end)) = ticks(request.ticks, (from, until), window.skip) else {
            return clock(from.saturating_sub(now) - longest);
        };
        let (from, until) = (request.ticks.start_of(first), request.ticks.start_of(end));
        // A lease of another era gives way first, then the one that ends first.
        let is_free = |lease: &Lease| lease.until <= now || lease.era != era;
        let order = |at: &usize| (leases[*at].era == era, leases[*at].until);
        let free = || (0..leases.len()).filter(|&at| is_free(&leases[at])).min_by_key(order);
        let Some(at) = own.or_else(free) else {
            return until_one_ends(Refusal::Full, leases.iter().map(|lease| lease.until).min());
        };
        if own.is_none() && leases[at].era == era {
            self.forgotten = (era, forgotten.max(leases[at].until));
        }
        let Request { key, database, by, lots, .. } = *request;
        let worker = lots.lot(lot).0;
        let started = if request.token.is_some() { leases[at].first } else { from };
        leases[at] = Lease { key, worker, lot, token: new, era, database, first: started, from, until, since, by };
        Decision::Granted { lot, token: new, from: first, to: end, until }
    }

    /// Ends a lease at an instant, or where its last grant begins. Returns whether there was one. It does not end before the first
    /// grant: another lessee may have had the lot then, and the clock may go back to there.
    pub fn release(&self, leases: &mut [Lease], claim: Claim, at: Option<i64>) -> bool {
        let Some(found) = self.find(leases, claim) else { return false };
        let lease = &mut leases[found];
        (lease.until, lease.token) = (lease.until.min(at.unwrap_or(lease.from).max(lease.first)), 0);
        true
    }

    fn find(&self, leases: &[Lease], Claim { key, database, token }: Claim) -> Option<usize> {
        let wanted = (self.time.era, key, database, token);
        leases.iter().position(|lease| token > 0 && (lease.era, lease.key, lease.database, lease.token) == wanted)
    }

    /// Returns the leases that have not ended.
    pub fn lasting<'a>(&self, leases: &'a [Lease], now: i64) -> impl Iterator<Item = &'a Lease> {
        let era = self.time.era;
        leases.iter().filter(move |lease| lease.era == era && lease.until > now)
    }
}

impl Request {
    const fn claim(&self, token: u64) -> Claim {
        Claim { key: self.key, database: self.database, token }
    }
}

/// Returns the lot that has been free for longest.
///
/// # Errors
/// When the first lot will be free.
fn free_lot<'a>(leases: impl Iterator<Item = &'a Lease>, request: &Request, now: i64) -> Result<u64, i64> {
    let count = request.lots.count();
    let mut known: Vec<&Lease> = leases.collect();
    known.sort_unstable_by_key(|lease| lease.lot);
    // A database gets half of the lots, so that others find some too.
    let own = || known.iter().filter(|lease| lease.database == request.database && lease.until > now);
    if own().count() as u64 >= (count / 2).max(1) {
        return Err(own().map(|lease| lease.until).min().unwrap_or(now));
    }
    let unknown = (0..count).zip(known.iter().map(|lease| lease.lot).chain([u64::MAX]));
    if let Some((lot, _)) = unknown.into_iter().find(|(lot, known)| lot != known) {
        return Ok(lot);
    }
    match known.iter().min_by_key(|lease| lease.until) {
        Some(lease) if lease.until > now => Err(lease.until),
        Some(lease) => Ok(lease.lot),
        None => Ok(0),
    }
}

/// Returns the ticks that begin in a span of free time and end before `skip`: the first one, and the first one after them.
fn ticks(ticks: Ticks, (from, until): (i64, i64), skip: i64) -> Option<(u64, u64)> {
    let (first, end) = (ticks.since(from)?, ticks.since(until)?);
    let end = if skip == NEVER { end } else { end.min(ticks.until(skip)?) };
    (first < end).then_some((first, end))
}
