//! IDs of flake that this process makes itself, on a worker that the database leases to it. This file is to be copied.
//! docs/how-to/applications.md says when to use it.
use std::any::Any;
use std::error::Error as StdError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fmt, process};

pub const LEASE: &str = "SELECT protocol, reason, wait, token, worker, tick_from, tick_until, shift, low, step, count, epoch, tick, now, until \
                         FROM flake_lease($1, $2)";
pub const RELEASE: &str = "SELECT flake_release($1, $2, $3)";
/// An answer of protocol 1. Where there is a reason there is no lease, and what follows `wait` is NULL, and 0 here, but `now`.
#[derive(Clone, Default)]
#[rustfmt::skip]
pub struct Row { pub reason: Option<String>, pub wait: i64, pub token: i64, pub worker: i64, pub tick_from: i64, pub tick_until: i64,
    pub shift: i32, pub low: i64, pub step: i32, pub count: i64, pub epoch: i64, pub tick: i64, pub now: i64, pub until: i64 }

/// A database, on a connection that nobody else uses. A request that has not ended after two seconds fails, and its connection is closed.
/// `refused` is SQLSTATE 42501, 42883, 0A000 or 22023: somebody has to mend something.
pub trait Lessor: Send + 'static {
    fn lease(&mut self, layout: &str, token: Option<i64>) -> Result<Row, Failure>;
    fn release(&mut self, layout: &str, token: i64, last_tick: Option<i64>) -> Result<(), Failure>;
}
pub struct Failure {
    pub refused: bool,
    pub cause: Box<dyn StdError + Send + Sync>,
}

type Cause = Arc<dyn StdError + Send + Sync>;

#[derive(Debug, Clone)]
pub enum Error {
    /// There was no lease in time.
    NoLease(Cause),
    /// Waiting is of no use.
    Refused(Cause),
    /// This is a copy that fork() has made of another process's memory.
    Forked,
}
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoLease(cause) => write!(f, "no lease of a worker number: {cause}"),
            Error::Refused(cause) => write!(f, "the layout cannot be leased: {cause}"),
            Error::Forked => f.write_str("these IDs are of the process that has forked this one: make others here"),
        }
    }
}
impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Error::NoLease(cause) | Error::Refused(cause) => Some(cause),
            Error::Forked => None,
        }
    }
}

fn said(text: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::NoLease(Arc::from(text.into()))
}

const SECOND: i64 = 1_000_000;

/// What the server has granted, and how much of it is used. Instants are microseconds, of the steady and of the wall clock.
#[derive(Default)]
pub struct Window {
    row: Option<Row>,
    came: i64,
    wall: i64,
    /// What renews the lease; without it, another lease is asked for.
    pub token: Option<i64>,
    due: i64,
    last: (i64, i64),
}

impl Window {
    /// The next ID, or None if there is none now.
    #[inline]
    pub fn id(&mut self, steady: i64, wall: impl Fn() -> i64) -> Option<i64> {
        let row = self.row.as_ref()?;
        // The server's clock was read before its answer came, so this never runs ahead of it. A tick never falls.
        let tick = (row.now + steady - self.came - row.epoch).div_euclid(row.tick).max(self.last.0);
        let n = if tick > self.last.0 { 0 } else { self.last.1 + 1 };
        let id = (tick << row.shift).wrapping_add(row.low + (n << row.step));
        // Whatever happened meanwhile, an ID of this window belongs to nobody else.
        let of = (id as u64 >> row.shift) as i64;
        let is_of_window = n < row.count && of >= row.tick_from && of < row.tick_until;
        if tick > self.last.0 && self.parted(steady, wall()) || !is_of_window {
            return None;
        }
        self.last = (tick, n);
        Some(id)
    }

    /// In how many microseconds there may be another ID, or None if that takes another lease.
    fn pause(&self, steady: i64) -> Option<i64> {
        let row = self.row.as_ref()?;
        let now = row.now + steady - self.came - row.epoch;
        let tick = now.div_euclid(row.tick).max(self.last.0 + 1).max(row.tick_from);
        (tick < row.tick_until).then(|| (tick * row.tick - now).max(50))
    }

    /// Whether to ask now, with the token.
    pub fn asks(&mut self, steady: i64, wall: i64) -> bool {
        self.parted(steady, wall);
        steady >= self.due
    }

    /// Returns the reason if the answer is of no use.
    pub fn answered(&mut self, mut row: Row, sent: i64, came: i64, wall: i64) -> Result<(), String> {
        if let Some(reason) = row.reason {
            self.token = self.token.filter(|_| reason != "lost");
            self.due = came + row.wait.min(5 * SECOND);
            return Err(format!("the database grants none for {} s: {reason}", row.wait as f64 / 1e6));
        }
        // The process may have stood still: what the answer says of the clock is old.
        if came - sent > 2 * SECOND {
            (self.token, self.due) = (None, came + SECOND);
            return Err("the answer took more than 2 s".into());
        }
        (self.came, self.wall, self.token) = (came, wall, Some(row.token));
        self.due = sent + (5 * SECOND).min((row.until - row.now) / 2);
        if let Some(old) =
            self.row.take().filter(|old| (old.worker, old.low, old.tick_until) == (row.worker, row.low, row.tick_from))
        {
            row.tick_from = old.tick_from;
        }
        // The server's clock was ahead, and is corrected. Nobody has used a tick of this window.
        if row.tick_until <= self.last.0 {
            self.last = (0, 0);
        }
        self.row = Some(row);
        Ok(())
    }

    /// There was no answer. The same token is tried again, because the server knows whether it was used.
    pub fn failed(&mut self, steady: i64, pause: i64) {
        self.due = steady + pause;
    }

    /// The token and the last tick used. There is no ID afterwards.
    pub fn release(&mut self) -> (Option<i64>, Option<i64>) {
        self.row = None;
        (self.token.take(), Some(self.last.0).filter(|last| *last != 0))
    }

    /// Whether the machine was suspended since the answer, or a clock was set.
    fn parted(&mut self, steady: i64, wall: i64) -> bool {
        let parted = self.row.is_some() && ((wall - self.wall) - (steady - self.came)).abs() > SECOND;
        if parted {
            (self.row, self.token, self.due) = (None, None, steady);
        }
        parted
    }
}

pub fn wall() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as i64
}

struct State {
    window: Window,
    problem: Error,
    closed: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    start: Instant,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic between two statements of a window leaves one that makes no ID twice: `last` is set before the ID is returned.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn steady(&self) -> i64 {
        self.start.elapsed().as_micros() as i64
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, microseconds: i64) -> MutexGuard<'a, State> {
        let pause = Duration::from_micros(microseconds.max(50) as u64);
        self.changed.wait_timeout(state, pause).map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state)
    }
}

/// For all threads of a process. Dropping it releases the lease, so that another process has the worker at once.
pub struct Ids {
    shared: Arc<Shared>,
    patience: Duration,
    process: u32,
    renewal: Option<JoinHandle<()>>,
}

impl Ids {
    /// Begins to ask for a lease, and renews it. `next` waits for it up to `patience`.
    pub fn new(layout: &'static str, patience: Duration, mut lessor: impl Lessor) -> Ids {
        let state = State { window: Window::default(), problem: said("no answer yet"), closed: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), start: Instant::now() });
        let renewed = Arc::clone(&shared);
        let renewal = spawn(move || renew(&renewed, layout, &mut lessor));
        Ids { shared, patience, process: process::id(), renewal: Some(renewal) }
    }

    pub fn next(&self) -> Result<i64, Error> {
        if process::id() != self.process {
            return Err(Error::Forked);
        }
        let (mut state, mut deadline) = (self.shared.lock(), None);
        loop {
            let steady = self.shared.steady();
            if let Some(id) = state.window.id(steady, wall) {
                return Ok(id);
            }
            let patience = i64::try_from(self.patience.as_micros()).unwrap_or(i64::MAX);
            let left = *deadline.get_or_insert(steady.saturating_add(patience)) - steady;
            let pause = state.window.pause(steady);
            if left <= 0 || pause.is_none() && matches!(state.problem, Error::Refused(_)) {
                return Err(state.problem.clone());
            }
            state = self.shared.wait(state, pause.unwrap_or(left).min(left));
        }
    }
}

impl Drop for Ids {
    fn drop(&mut self) {
        if process::id() == self.process {
            self.shared.lock().closed = true;
            self.shared.changed.notify_all();
            let _ = self.renewal.take().map(JoinHandle::join);
        }
    }
}

/// A panic of the driver is an error as others are: the lease is renewed whatever happens.
fn caught<T>(request: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let text = |panic: Box<dyn Any + Send>| {
        panic.downcast_ref::<&str>().map_or("a panic".into(), |text| format!("a panic: {text}"))
    };
    catch_unwind(AssertUnwindSafe(request))
        .unwrap_or_else(|panic| Err(Failure { refused: false, cause: text(panic).into() }))
}

fn renew(shared: &Shared, layout: &str, lessor: &mut impl Lessor) {
    let mut state = shared.lock();
    while !state.closed {
        let steady = shared.steady();
        if !state.window.asks(steady, wall()) {
            let pause = (state.window.due - steady).min(SECOND / 2);
            state = shared.wait(state, pause);
            continue;
        }
        let token = state.window.token;
        drop(state);
        let sent = shared.steady();
        let answer = caught(|| lessor.lease(layout, token));
        let came = shared.steady();
        // Processes that failed together do not ask together.
        let jitter = wall() % SECOND;
        state = shared.lock();
        state.problem = match answer {
            // A renewal of a window that was given up begins when that one ends.
            Ok(_) if token != state.window.token => said("a clock was set"),
            Ok(row) => said(state.window.answered(row, sent, came, wall()).err().unwrap_or_default()),
            Err(failure) => {
                state.window.failed(came, if failure.refused { 30 * SECOND } else { SECOND / 2 + jitter });
                let cause = Arc::from(failure.cause);
                if failure.refused { Error::Refused(cause) } else { Error::NoLease(cause) }
            }
        };
        shared.changed.notify_all();
    }
    let released = state.window.release();
    drop(state);
    if let (Some(token), last) = released {
        // Otherwise the lease ends by itself.
        let _ = caught(|| lessor.release(layout, token, last));
    }
}
