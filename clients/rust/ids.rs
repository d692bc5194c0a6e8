//! IDs of flake for a program that needs them before it inserts the rows, from a buffer. This file is to be copied.
//! docs/how-to/applications.md says when to use it, and clients/README.md has its rules.
#![allow(unsafe_code, reason = "a fork is noticed by pthread_atfork, faster than by the ID of the process")]
use std::any::Any;
use std::collections::VecDeque;
use std::error::Error as StdError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant, SystemTime};

pub const BATCH: &str = "SELECT flake_batch($1, $2)";

/// A database: a connection of its own, or a pool. It is asked outside of any transaction. A request that has not ended after two
/// seconds fails, and its connection is closed.
pub trait Source: Send + 'static {
    /// Returns what BATCH has returned.
    fn batch(&mut self, layout: &str, count: i32) -> Result<Vec<i64>, Failure>;

    /// Closes a connection of its own, because nobody has wanted an ID for ten seconds.
    fn rest(&mut self) {}
}

pub struct Failure {
    pub sqlstate: Option<String>,
    pub cause: Box<dyn StdError + Send + Sync>,
}

type Cause = Arc<dyn StdError + Send + Sync>;

#[derive(Debug, Clone)]
pub enum Error {
    /// There was no ID in time, and it is worth trying again.
    Unavailable(Cause),
    /// Somebody has to mend something: a privilege, the name of a layout, the extension, the login.
    Refused(Cause),
    /// close() was called.
    Closed,
    /// This is a copy that fork() has made of another process's memory.
    Forked,
}
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unavailable(cause) => write!(f, "no ID in time: {cause}"),
            Error::Refused(cause) => write!(f, "IDs are refused: {cause}"),
            Error::Closed => f.write_str("close() was called"),
            Error::Forked => f.write_str("these IDs are of the process that has forked this one: make others here"),
        }
    }
}
impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Error::Unavailable(cause) | Error::Refused(cause) => Some(cause),
            Error::Closed | Error::Forked => None,
        }
    }
}

const PERMANENT: [&str; 7] = ["42501", "42883", "22023", "2200H", "3D000", "28000", "28P01"];

pub struct Options {
    /// IDs that were fetched so long ago are thrown away. None keeps them.
    pub max_age: Option<Duration>,
    /// How many IDs one statement fetches at most.
    pub most: i32,
    /// How long an ID is waited for.
    pub patience: Duration,
}
impl Default for Options {
    fn default() -> Options {
        Options { max_age: Some(Duration::from_secs(1)), most: 10_000, patience: Duration::from_secs(5) }
    }
}

/// How many times this process is a child of one that used IDs.
static FORKS: AtomicU32 = AtomicU32::new(0);

fn count_forks() {
    extern "C" fn forked() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> i32;
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function is POSIX's, and the handler only adds to a number, which it may do in a child.
        let failed = unsafe { pthread_atfork(None, None, Some(forked)) };
        assert_eq!(failed, 0, "no memory to notice forks");
    });
}

/// The IDs of one answer, the next one at the end.
struct Batch {
    ids: Vec<i64>,
    sent: Instant,
    until: Option<Instant>,
    /// When so few are left, or at this time, the next batch is fetched.
    low: usize,
    soon: Option<Instant>,
    has_asked: bool,
}

struct State {
    batches: VecDeque<Batch>,
    /// How many IDs are waited for, by how many threads, and how many threads have an answer and have not looked at it yet. The round
    /// is the number of answers.
    waited: usize,
    waiting: usize,
    woken: usize,
    round: u64,
    runs_low: bool,
    closed: bool,
    problem: Error,
    failed: u32,
    retry_at: Instant,
    used: usize,
    /// How many IDs were used in the last `max_age`, at the last request.
    rate: f64,
    rated_at: Instant,
}

impl State {
    /// Removes IDs until there are `count`. Those that are too old are for a thread that waited already when they were asked for:
    /// on a slow connection, it would get none otherwise.
    fn take(&mut self, count: usize, now: Instant, since: Instant, taken: &mut Vec<i64>) {
        let before = taken.len();
        while let Some(batch) = self.batches.front_mut().filter(|_| taken.len() < count) {
            if batch.until.is_none_or(|until| now < until) || since <= batch.sent {
                let rest = batch.ids.len().saturating_sub(count - taken.len());
                taken.extend(batch.ids.drain(rest..).rev());
            } else {
                batch.ids.clear();
            }
            if batch.ids.is_empty() && taken.len() < count {
                self.batches.pop_front();
            }
        }
        self.used += taken.len() - before;
    }

    /// Whether to fetch the next batch now. Each batch says so once.
    fn asks_ahead(&mut self, now: Instant) -> bool {
        let Some(batch) = self.batches.back_mut() else { return false };
        if batch.has_asked || batch.ids.len() > batch.low && batch.soon.is_none_or(|soon| now < soon) {
            return false;
        }
        (batch.has_asked, batch.low, batch.soon) = (true, 0, batch.until);
        self.runs_low = true;
        true
    }

    /// How many IDs to ask for. This is called once before each request.
    fn wanted(&mut self, options: &Options, now: Instant) -> i32 {
        let spans = (now - self.rated_at).as_secs_f64() / options.max_age.map_or(1.0, |age| age.as_secs_f64());
        self.rate *= (1.0 - spans).max(0.0);
        self.rate += self.used as f64 * (1.0 / spans.max(1e-9)).min(1.0);
        (self.rated_at, self.used) = (now, 0);
        (self.waited as f64).max(self.rate.round()).clamp(1.0, f64::from(options.most)) as i32
    }

    fn wake(&mut self) {
        self.woken += self.waiting;
        (self.waited, self.waiting, self.round) = (0, 0, self.round + 1);
    }

    fn came(&mut self, mut ids: Vec<i64>, max_age: Option<Duration>, sent: Instant) {
        ids.reverse();
        let (until, soon) = (max_age.map(|age| sent + age), max_age.map(|age| sent + age * 3 / 4));
        let low = (ids.len() / 4).max(1);
        self.batches.push_back(Batch { ids, sent, until, low, soon, has_asked: false });
    }

    fn failed(&mut self, failure: Failure, was_used: bool) {
        let (now, cause) = (Instant::now(), Arc::from(failure.cause));
        if failure.sqlstate.is_some_and(|sqlstate| PERMANENT.contains(&sqlstate.as_str())) {
            (self.problem, self.retry_at) = (Error::Refused(cause), now + Duration::from_secs(1));
            return;
        }
        self.problem = Error::Unavailable(cause);
        // The server may have ended a connection that was there before. Processes that failed together do not ask together.
        let random =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |passed| passed.subsec_micros());
        let pause = (100u32 << self.failed).min(1000) * (500 + random % 1000) / 1000;
        let pause = if was_used && self.failed == 0 { 0 } else { pause };
        self.failed = (self.failed + 1).min(9);
        self.retry_at = now + Duration::from_millis(u64::from(pause));
    }
}

struct Shared {
    state: Mutex<State>,
    /// Wakes the thread that fetches, and those who wait for it.
    wanted: Condvar,
    changed: Condvar,
    options: Options,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic between two statements leaves a buffer that gives no ID twice: an ID is removed before it is returned.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For all threads of a process. Dropping it closes the connection.
pub struct Ids {
    shared: Arc<Shared>,
    forks: u32,
    fetching: Option<JoinHandle<()>>,
}

impl Ids {
    pub fn new(layout: &'static str, source: impl Source, options: Options) -> Ids {
        count_forks();
        let (now, batches) = (Instant::now(), VecDeque::new());
        #[rustfmt::skip]
        let state = State { batches, waited: 0, waiting: 0, woken: 0, round: 0, runs_low: false, closed: false, problem: no_answer(), failed: 0, retry_at: now, used: 0,
            rate: 0.0, rated_at: now };
        let shared =
            Arc::new(Shared { state: Mutex::new(state), wanted: Condvar::new(), changed: Condvar::new(), options });
        let of_thread = Arc::clone(&shared);
        let fetching = spawn(move || fetch(&of_thread, layout, source));
        Ids { shared, forks: FORKS.load(Ordering::Relaxed), fetching: Some(fetching) }
    }

    /// An ID, for which it waits if it has to.
    #[inline]
    pub fn next(&self) -> Result<i64, Error> {
        match self.fast()? {
            Some(id) => Ok(id),
            None => Ok(self.taken(1, self.shared.options.patience)?[0]),
        }
    }

    /// An ID of the buffer, or None if there is none now.
    pub fn try_next(&self) -> Option<i64> {
        let id = self.fast().ok()?;
        id.or_else(|| self.taken(1, Duration::ZERO).ok().map(|ids| ids[0]))
    }

    /// So many IDs, or an error as of next().
    pub fn take(&self, count: usize) -> Result<Vec<i64>, Error> {
        self.taken(count, self.shared.options.patience)
    }

    /// Closes the connection. Those who wait get the error Closed.
    pub fn close(&self) {
        if self.check_process().is_ok() {
            let mut state = self.shared.lock();
            state.closed = true;
            state.batches.clear();
            self.shared.changed.notify_all();
            self.shared.wanted.notify_one();
        }
    }

    /// A child has none of the threads of its parent, and locks as they were at the fork.
    fn check_process(&self) -> Result<(), Error> {
        if FORKS.load(Ordering::Relaxed) == self.forks { Ok(()) } else { Err(Error::Forked) }
    }

    #[inline]
    fn fast(&self) -> Result<Option<i64>, Error> {
        self.check_process()?;
        let mut state = self.shared.lock();
        let batch = state.batches.front_mut().filter(|batch| batch.ids.len() > batch.low);
        let fresh = batch.filter(|batch| batch.soon.is_none_or(|soon| Instant::now() < soon));
        let id = fresh.and_then(|batch| batch.ids.pop());
        state.used += usize::from(id.is_some());
        Ok(id)
    }

    fn taken(&self, count: usize, patience: Duration) -> Result<Vec<i64>, Error> {
        self.check_process()?;
        let (mut state, since) = (self.shared.lock(), Instant::now());
        let (mut ids, mut has_waited) = (Vec::with_capacity(count.min(1 << 16)), false);
        loop {
            if state.closed {
                return Err(Error::Closed);
            }
            let now = Instant::now();
            // What others wait for is not taken.
            if has_waited || state.waiting + state.woken == 0 {
                state.take(count, now, since, &mut ids);
            }
            if state.asks_ahead(now) {
                self.shared.wanted.notify_one();
            }
            let (left, lacks) = (patience.saturating_sub(now - since), count - ids.len());
            if lacks == 0 {
                return Ok(ids);
            }
            if left.is_zero() || matches!(state.problem, Error::Refused(_)) && now < state.retry_at {
                return Err(state.problem.clone());
            }
            (state.waited, state.waiting) = (state.waited + lacks, state.waiting + 1);
            let round = state.round;
            self.shared.wanted.notify_one();
            let wait = self.shared.changed.wait_timeout(state, left);
            state = wait.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
            if state.round == round {
                (state.waited, state.waiting) = (state.waited - lacks, state.waiting - 1);
            } else {
                state.woken -= 1;
            }
            has_waited = true;
        }
    }
}

impl Iterator for &Ids {
    type Item = Result<i64, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(Ids::next(self))
    }
}

impl Drop for Ids {
    fn drop(&mut self) {
        self.close();
        if self.check_process().is_ok() {
            let _ = self.fetching.take().map(JoinHandle::join);
        }
    }
}

fn no_answer() -> Error {
    Error::Unavailable(Arc::from(Box::from("no answer yet")))
}

fn failure(text: String) -> Failure {
    Failure { sqlstate: None, cause: text.into() }
}

/// A panic of the driver is an error as others are, and so is an answer of another length.
fn asked(source: &mut impl Source, layout: &str, count: i32) -> Result<Vec<i64>, Failure> {
    let text = |panic: Box<dyn Any + Send>| panic.downcast_ref::<&str>().map_or("a panic", |text| text).to_owned();
    let answer = catch_unwind(AssertUnwindSafe(|| source.batch(layout, count)));
    let ids = answer.unwrap_or_else(|panic| Err(failure(text(panic))))?;
    if ids.len() == count as usize { Ok(ids) } else { Err(failure(format!("{} IDs instead of {count}", ids.len()))) }
}

const REST: Duration = Duration::from_secs(10);

/// Fetches IDs when they are wanted, until the end.
fn fetch(shared: &Shared, layout: &str, mut source: impl Source) {
    let (mut state, mut rests_at, mut was_used) = (shared.lock(), Instant::now() + REST, false);
    while !state.closed {
        let now = Instant::now();
        let (is_waited, is_due) = (state.waited > 0, now >= state.retry_at);
        let asks = (is_waited || state.runs_low) && is_due;
        state.runs_low = false;
        let count = if asks { state.wanted(&shared.options, now) } else { 0 };
        // A single ID that was fetched ahead would be too old when it is used.
        if count == 0 || !is_waited && count == 1 {
            if was_used && now >= rests_at {
                source.rest();
                was_used = false;
            }
            let until = if is_waited { state.retry_at } else { rests_at.max(now + Duration::from_secs(1)) };
            let wait = shared.wanted.wait_timeout(state, until.saturating_duration_since(now));
            state = wait.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
            continue;
        }
        drop(state);
        let sent = Instant::now();
        let answer = asked(&mut source, layout, count);
        state = shared.lock();
        match answer {
            Ok(ids) => {
                (state.failed, state.retry_at, state.problem) = (0, sent, no_answer());
                state.came(ids, shared.options.max_age, sent);
                was_used = true;
            }
            Err(failure) => {
                state.failed(failure, was_used);
                was_used = false;
            }
        }
        rests_at = Instant::now() + REST;
        state.wake();
        shared.changed.notify_all();
    }
}
