//! A generator of this session: when it asks the ledger, and how long the session waits for an answer.

use std::sync::atomic::Ordering;
use std::time::Duration;

use flake_core::ledger::claims::{Quota, quota};
use flake_core::ledger::host::Server;
use flake_core::ledger::line::CUSTOM_LINES;
use flake_core::ledger::protocol;
use flake_core::{Answer, FinalProgress, IdSource, Place, Reason, Resumable, Slot};
use pgrx::PgSqlErrorCode::*;

use super::delays::{self, Delays};
use super::tick_clock::TickClock;
use super::transaction;
use super::wait::Wait;
use crate::clock;
use crate::error::Error;
use crate::ledger::{self, Member};
use crate::postgres::timestamptz::to_text;
use crate::postgres::transaction::is_in_worker;
use crate::postgres::{recovery, slot};
use crate::settings;

/// If the next tick is this close, a session waits for it, whatever flake.max_clock_wait says.
const USUAL_TICK: Duration = Duration::from_secs(1);

/// A generator of this session.
pub struct SessionGenerator<S: IdSource> {
    resumable: Resumable<S>,
    delays: Delays,
    own: Member,
    clock: TickClock,
}

impl<S: IdSource> SessionGenerator<S> {
    /// Creates a generator. `join` makes the session a user of the ledger.
    pub fn new(source: S, join: impl FnOnce() -> Result<Member, Error>) -> Result<Self, Error> {
        if is_in_worker() {
            return Err(Error::of(ERRCODE_INVALID_TRANSACTION_STATE, "cannot make IDs in a parallel worker")
                .detail("A worker ends before its transaction does, so horizons would not wait for the worker's IDs.")
                .hint("Declare the function that calls flake_next, flake_batch or sno_next PARALLEL RESTRICTED."));
        }
        check(source)?;
        let mut own = join()?;
        let (slot, slots) = slot::numbers();
        let lanes = source.lanes(protocol::part(&mut own)?, slots)?;
        let database = recovery::database();
        let place = Place::find(&own, &source, lanes, lanes.of(Slot::new(slot, slots)?), database);
        let quota = || quota(own.shared(), own.lines(), database);
        let place = place.ok_or_else(|| no_lanes_left(&source.name(), lanes.count, quota()))?;
        let resumable = Resumable::begin(&mut own, source, &place)?;
        Ok(Self { resumable, own, delays: Delays::default(), clock: TickClock::default() })
    }

    /// The source of its IDs.
    #[inline]
    pub const fn source(&self) -> &S {
        &self.resumable.generator.source
    }

    /// Continues under the name that the source has now, and reads the clock again.
    pub fn go_on_for(&mut self, source: S) -> Result<(), Error> {
        self.forget_reading();
        if source != *self.source() {
            check(source)?;
        }
        self.resumable.generator.adopt(source);
        Ok(())
    }

    /// Forgets the last reading of the clock, and that the page has the generator's time.
    pub const fn doubt_page(&mut self) {
        self.forget_reading();
        self.resumable.doubt_page();
    }

    /// Forgets the last reading of the clock.
    pub const fn forget_reading(&mut self) {
        self.clock.forget();
    }

    /// Makes an ID without asking the ledger, if that is possible.
    #[inline]
    pub fn at_once(&mut self, argument: S::Argument) -> Option<S::Id> {
        if let Some(now) = self.clock.known()
            && let Some(id) = self.resumable.generator.next_taken(now, argument)
        {
            return Some(id);
        }
        self.by_the_clock(argument)
    }

    /// Like `at_once`, but reads the clock.
    #[inline(never)]
    fn by_the_clock(&mut self, argument: S::Argument) -> Option<S::Id> {
        let now = self.clock.read();
        // If this fails, the caller asks again where errors can be raised. The era is checked after the ID is admitted.
        if !ledger::admits(now) || !self.resumable.is_of(self.own.era()) {
            return None;
        }
        let answer = self.resumable.at(&self.own, now, argument);
        self.clock.keep(self.resumable.generator.remaining(now));
        if let Answer::Issue(id) = answer { Some(id) } else { None }
    }

    /// Makes as many IDs as it can without asking the ledger. Returns how many.
    pub fn fill(&mut self, ids: &mut [S::Id], argument: S::Argument) -> usize {
        let now = clock::now();
        let may_fill = ledger::admits(now) && self.resumable.is_of(self.own.era());
        if may_fill { self.resumable.fill(&self.own, now, ids, argument) } else { 0 }
    }

    /// Makes an ID, or returns None and says in `wait` what for. Raises an error when the whole wait would take too long.
    #[cold]
    pub fn attempt(&mut self, argument: S::Argument, wait: &mut Wait) -> Result<Option<S::Id>, Error> {
        if wait.lasted().is_zero() {
            ledger::watch_clock();
        }
        let answer = self.resumable.next(&mut self.own, |_| transaction::admit(), argument);
        self.delays.report(self.resumable.issued());
        let attempt = match answer {
            Err(error) => Err(error),
            Ok(Answer::Issue(id)) => Ok(Some(id)),
            Ok(Answer::Exhausted) => Err(self.source().ticks().exhausted(&self.source().name()).into()),
            Ok(answer) => answer.wait().map_or(Ok(()), |(until, reason)| self.wait(until, reason, wait)).map(|()| None),
        };
        if !matches!(attempt, Ok(None)) {
            delays::record(wait.lasted());
        }
        attempt
    }

    /// Returns how long to be ready to wait until `until`, if a start or a promotion has closed the time before it.
    fn wait_of_start(&self, until: i64) -> Duration {
        Duration::from_micros(protocol::wait_of_start(&self.own, until).unsigned_abs())
    }

    /// Starts or continues to wait for an instant, unless that would take too long.
    fn wait(&mut self, until: i64, reason: Reason, wait: &mut Wait) -> Result<(), Error> {
        self.delays.count(reason, self.resumable.issued());
        let remaining = until - clock::now();
        wait.begin(remaining, reason);
        let (layout, max_clock_wait) = (self.source().name(), settings::max_clock_wait());
        let left = Duration::from_micros(remaining.max(0).unsigned_abs());
        match reason {
            Reason::ClockBehind
                if wait.lasted().max(left) > max_clock_wait.max(wait.allow(self.wait_of_start(until))) =>
            {
                // Below a horizon, no session makes IDs any more.
                let is_below_horizon = until <= self.own.shared().announced.load(Ordering::Acquire);
                let message = match is_below_horizon {
                    true => "clock is behind a horizon that was returned".to_owned(),
                    false => format!("clock is behind the last ID of layout \"{layout}\""),
                };
                let detail = format!("The clock is {left:?} behind, and flake.max_clock_wait is {max_clock_wait:?}.");
                Err(Error::not_ready(message).detail(detail).hint(format!(
                    "IDs can be made again once the clock has reached {}; check its synchronization. If it is \
                             right now and was ahead before, see flake_check().",
                    to_text(until)
                )))
            }
            Reason::NextTick if left > max_clock_wait.max(USUAL_TICK) => {
                Err(Error::not_ready(format!("next tick of layout \"{layout}\" is too far away"))
                    .detail(format!(
                        "This session has no more IDs in the current tick, which lasts {left:?} longer, until {}, \
                             and flake.max_clock_wait is {max_clock_wait:?}.",
                        to_text(until)
                    ))
                    .hint("Wait, raise flake.max_clock_wait, or use a layout with a shorter tick."))
            }
            _ => Ok(()),
        }
    }

    /// Returns the progress that the generator leaves at exit.
    pub fn final_progress(&mut self) -> FinalProgress {
        self.delays.report(self.resumable.issued());
        self.resumable.final_progress()
    }
}

/// Raises an error for a source that makes no IDs at this time.
fn check<S: IdSource>(source: S) -> Result<(), Error> {
    let name = source.name();
    if !source.generates() {
        return Err(read_only(&name));
    }
    source.ticks().tick_to_generate_in(clock::now(), &name)?;
    Ok(())
}

fn read_only(layout: &str) -> Error {
    let message = format!("cannot make IDs of layout \"{layout}\"");
    Error::invalid(message)
        .detail("flake only reads IDs of this layout.")
        .hint("List the layouts that flake makes IDs of: SELECT name FROM flake_layouts WHERE generates.")
}

fn no_lanes_left(layout: &str, needed: u64, Quota { taken, most }: Quota) -> Error {
    Error::of(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, "too many custom layouts are in use")
        .detail(format!(
            "Layout \"{layout}\" needs {needed} lanes. The custom layouts of this database have {taken}, and can have {most}: \
                 half of what other databases leave of {CUSTOM_LINES}."
        ))
        .hint(
            "Use fewer layouts, or built-in ones, and restart the server: a layout that was dropped keeps its lanes until \
             then. Layouts with the same epoch, tick and bits share theirs.",
        )
}
