//! The store of this session's generators, one for each kind of source.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::CStr;
use std::mem::ManuallyDrop;
use std::thread::LocalKey;
use std::time::Duration;

use flake_core::ledger::host::Host;
use flake_core::{Answer, FinalProgress, Node, Remaining, Resumable, Resume, Share, Slot};

use super::delays::Delays;
use super::exit;
use super::shelf::Shelf;
use super::tick_clock::TickClock;
use super::transaction;
use super::wait::{Reason, Wait};
use crate::clock;
use crate::error::{Error, OrRaise};
use crate::ledger::{self, Backend};
use crate::postgres::slot;
use crate::postgres::transaction::is_in_worker;
use crate::settings;

/// The next tick is waited for if it is as near as this, whatever flake.max_clock_wait says.
const USUAL_TICK: Duration = Duration::from_secs(1);

/// The source of a generator's IDs: a layout, or a partition of sno.
pub trait IdSource: Copy + 'static {
    type Generator: Resume;
    /// The argument of a call that makes an ID.
    type Argument: Copy;
    /// The SQL function that makes IDs, for error messages.
    const FUNCTION: &'static CStr;

    /// Returns the session's generators for sources of this type.
    fn store() -> &'static LocalKey<Store<Self>>;
    /// Returns a number that is the same for sources that use the same generator, and different for others.
    fn key(&self) -> u64;
    /// Refuses a source that IDs cannot be made for at `now`.
    fn check(&self, now: i64) -> Result<(), Error>;
    /// Computes the share of a slot of a node.
    fn share(&self, node: Node, slot: Slot) -> Result<Share, flake_core::Error>;
    /// Creates the generator of a share.
    fn begin(&self, backend: &mut Backend, share: Share) -> Result<Resumable<Self::Generator>, Error>;
    /// Asks a generator for its next ID.
    fn next(generator: &mut Self::Generator, now: i64, argument: Self::Argument) -> Answer<Id<Self>>;
    /// Returns how long a generator's tick and step last from `now` on.
    fn remaining(generator: &Self::Generator, now: i64) -> Remaining;
    /// Has a generator that another source began go on for this one, if IDs can be made for it.
    fn adopt(&self, _began: &Self, _resumable: &mut Resumable<Self::Generator>) -> Result<(), Error> {
        Ok(())
    }
    /// Returns the layout's name, for error messages.
    fn layout_name(&self) -> Cow<'static, str>;
    /// Returns the error for a clock past the last tick.
    fn exhausted(&self) -> flake_core::Error;
}

/// The type of a source's IDs.
pub type Id<S> = <<S as IdSource>::Generator as Resume>::Id;

/// The generators of this session for sources of one type. They are never dropped: where a backend ends by libc's exit(),
/// destructors run before PostgreSQL's callbacks, which have to find the generators.
pub type Store<S> = ManuallyDrop<RefCell<Shelf<SessionGenerator<S>>>>;

/// A generator of this session.
pub struct SessionGenerator<S: IdSource> {
    pub source: S,
    pub share: Share,
    pub resumable: Resumable<S::Generator>,
    pub delays: Delays,
    backend: Backend,
    clock: TickClock,
}

/// The outcome of one attempt to make an ID.
pub enum Attempt<Id> {
    Made(Id),
    /// There is no ID for this many microseconds more.
    Pause {
        remaining: i64,
        reason: Reason,
    },
}

impl<S: IdSource> SessionGenerator<S> {
    fn new(source: S) -> Result<Self, Error> {
        settings::refuse_in_recovery(S::FUNCTION);
        if is_in_worker() {
            return Err(Error::InWorker);
        }
        source.check(clock::now())?;
        let mut backend = ledger::join()?;
        exit::leave_at_exit(final_progress_of::<S>);
        transaction::at_end(forget_readings::<S>);
        let share = source.share(backend.node(), slot::slot()?)?;
        let resumable = source.begin(&mut backend, share)?;
        Ok(Self { source, share, resumable, backend, delays: Delays::default(), clock: TickClock::default() })
    }

    /// Returns the generator's answer, without asking the ledger.
    #[inline]
    pub fn at_once(&mut self, argument: S::Argument) -> Answer<Id<S>> {
        match self.clock.known() {
            Some(now) => S::next(&mut self.resumable.generator, now, argument),
            None => self.by_the_clock(argument),
        }
    }

    /// The same, after reading the clock.
    #[inline(never)]
    fn by_the_clock(&mut self, argument: S::Argument) -> Answer<Id<S>> {
        let now = self.clock.read();
        // The caller asks again where errors can be raised. The era is looked at once the ID is admitted.
        if !ledger::admits(now) || !self.resumable.is_of(self.backend.era()) {
            return Answer::ClockBehind { until: now };
        }
        let generator = &mut self.resumable.generator;
        let answer = S::next(generator, now, argument);
        self.clock.keep(S::remaining(generator, now));
        answer
    }

    /// Has `fill` make IDs, without asking the ledger, if any may be made now; returns how many it has made.
    pub fn fill_with(&mut self, fill: impl FnOnce(&mut S::Generator, i64) -> usize) -> usize {
        let now = clock::now();
        let may_fill = ledger::admits(now) && self.resumable.is_of(self.backend.era());
        if may_fill { fill(&mut self.resumable.generator, now) } else { 0 }
    }

    /// Makes an ID, or says how long to pause before the next attempt. It raises [`Error::ClockBehind`] once `wait` has
    /// taken too long.
    #[cold]
    pub fn attempt(&mut self, argument: S::Argument, wait: &mut Wait) -> Result<Attempt<Id<S>>, Error> {
        if wait.lasted().is_zero() {
            ledger::watch_clock();
        }
        let attempt = self.ask(argument).and_then(|answer| self.judge(answer, wait));
        if !matches!(attempt, Ok(Attempt::Pause { .. })) {
            self.delays.record_wait(wait.lasted());
        }
        attempt
    }

    /// Returns the generator's answer, after asking the ledger for time where it needs any.
    fn ask(&mut self, argument: S::Argument) -> Result<Answer<Id<S>>, Error> {
        settings::refuse_in_recovery(S::FUNCTION);
        ledger::notice_promotion(&mut self.backend)?;
        let answer = self.resumable.next(
            &mut self.backend,
            |_| transaction::admit(),
            |generator, now| S::next(generator, now, argument),
        );
        self.delays.report(self.resumable.issued());
        answer
    }

    /// Decides whether to pause for an answer.
    fn judge(&mut self, answer: Answer<Id<S>>, wait: &mut Wait) -> Result<Attempt<Id<S>>, Error> {
        let (until, reason) = match answer {
            Answer::Issue(id) => return Ok(Attempt::Made(id)),
            Answer::Exhausted => return Err(self.source.exhausted().into()),
            Answer::Wait { until } => (until, Reason::NextTick),
            Answer::ClockBehind { until } => (until, Reason::ClockBehind),
            Answer::Outside { .. } => unreachable!("the generator was asked again"),
        };
        self.delays.count(reason, self.resumable.issued());
        wait.begin();
        let remaining = until - clock::now();
        let (layout, max_clock_wait) = (self.source.layout_name(), settings::max_clock_wait());
        let left = Duration::from_micros(remaining.max(0).unsigned_abs());
        match reason {
            Reason::ClockBehind
                if wait.lasted().max(left) > max_clock_wait.max(wait.allow(ledger::wait_of_start(until))) =>
            {
                match ledger::is_announced(until) {
                    true => Err(Error::ClockBehindHorizon { behind: left, until, max_clock_wait }),
                    false => Err(Error::ClockBehind { layout, behind: left, until, max_clock_wait }),
                }
            }
            Reason::NextTick if left > max_clock_wait.max(USUAL_TICK) => {
                Err(Error::LongTick { layout, left, until, max_clock_wait })
            }
            _ => Ok(Attempt::Pause { remaining, reason }),
        }
    }

    fn final_progress(&mut self) -> FinalProgress {
        self.delays.report(self.resumable.issued());
        self.resumable.final_progress()
    }
}

/// Acts on this session's generator for a source, which is created if it does not exist.
pub fn with_generator<S: IdSource, R>(source: S, act: impl FnOnce(&mut SessionGenerator<S>) -> R) -> R {
    S::store().with(|generators| {
        let key = source.key();
        if !generators.borrow().has(key) {
            // No generator is borrowed meanwhile, because the session may exit while it waits for a lock.
            let new = SessionGenerator::new(source).or_raise();
            generators.borrow_mut().add(key, new);
        }
        let mut generators = generators.borrow_mut();
        let Some(own) = generators.bring_to_hand(key) else { unreachable!("it has just been created") };
        own.clock.forget();
        // A layout may go by another name now.
        source.adopt(&own.source, &mut own.resumable).or_raise();
        own.source = source;
        act(own)
    })
}

/// Acts on the generator whose source is wanted, if it is at hand and not in use.
#[inline]
pub fn find<S: IdSource, R>(
    is_wanted: impl Fn(&S) -> bool,
    act: impl FnOnce(&mut SessionGenerator<S>) -> Option<R>,
) -> Option<R> {
    S::store().with(|generators| {
        let mut generators = generators.try_borrow_mut().ok()?;
        act(generators.at_hand().find(|own| is_wanted(&own.source))?)
    })
}

/// Acts on each of this session's generators for sources of one type.
pub fn each<S: IdSource, R>(act: impl FnMut(&SessionGenerator<S>) -> R) -> Vec<R> {
    S::store().with(|generators| generators.borrow().all().map(act).collect())
}

/// Has the generators of one store read the clock again.
fn forget_readings<S: IdSource>() {
    S::store().with(|generators| {
        // Generators that are not at hand read it when they come there.
        if let Ok(mut generators) = generators.try_borrow_mut() {
            generators.at_hand().for_each(|own| own.clock.forget());
        }
    });
}

/// Returns what the generators of one store leave at exit; none if one of them is in the middle of making an ID.
fn final_progress_of<S: IdSource>() -> Option<Vec<FinalProgress>> {
    S::store().with(|generators| {
        let mut generators = generators.try_borrow_mut().ok()?;
        Some(generators.all_mut().map(SessionGenerator::final_progress).collect())
    })
}
