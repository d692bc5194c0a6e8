//! A generator of this session: when it asks the ledger, and how long the session waits for an answer.

use std::time::Duration;

use flake_core::ledger::cursors::claims::{Quota, quota};
use flake_core::ledger::cursors::line::CUSTOM_LINES;
use flake_core::ledger::host::Server;
use flake_core::ledger::time::begin::parts;
use flake_core::ledger::time::grant::MAX_AHEAD_MICROS;
use flake_core::{Answer, IdSource, Place, Reason, Resumable, lanes_of};
use pgrx::PgSqlErrorCode::*;

use super::delays::{self, Delays};
use super::tick_clock::TickClock;
use super::wait::Wait;
use crate::clock;
use crate::error::Error;
use crate::ledger::{self, Backend};
use crate::postgres::timestamptz::to_text;
use crate::postgres::transaction::is_in_worker;
use crate::postgres::{proc, recovery};

/// A generator of this session.
pub struct SessionGenerator<S: IdSource> {
    resumable: Resumable<S>,
    delays: Delays,
    own: Backend,
    clock: TickClock,
}

impl<S: IdSource> SessionGenerator<S> {
    /// Creates a generator. `join` makes the session a user of the ledger.
    pub fn new(source: S, join: impl FnOnce() -> Result<Backend, Error>) -> Result<Self, Error> {
        if is_in_worker() {
            return Err(Error::of(ERRCODE_INVALID_TRANSACTION_STATE, "cannot make IDs in a parallel worker")
                .detail("A worker ends before its transaction does, so watermarks would not wait for the worker's IDs.")
                .hint("Declare the function that calls flake_next, flake_batch or sno_next PARALLEL RESTRICTED."));
        }
        check(source)?;
        let mut own = join()?;
        let lanes = lanes_of(&source, parts(&mut own)?)?;
        let database = recovery::database();
        let place = Place::find(&own, &source, lanes, lanes[0].of(proc::number()), database);
        let quota = || quota(own.shared(), own.lines(), database);
        let place = place.ok_or_else(|| no_lanes_left(&source.name(), lanes[0].count, quota()))?;
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
    pub const fn invalidate_page(&mut self) {
        self.forget_reading();
        self.resumable.invalidate_page();
    }

    /// Forgets the last reading of the clock.
    pub const fn forget_reading(&mut self) {
        self.clock.forget();
    }

    /// Makes an ID without asking the ledger, if that is possible.
    #[inline]
    pub fn at_once(&mut self, argument: S::Argument) -> Option<S::Id> {
        if let Some(now) = self.clock.known()
            && let Some(id) = self.resumable.generator.try_next(now, argument)
        {
            return Some(id);
        }
        self.by_the_clock(argument)
    }

    /// Like `at_once`, but reads the clock. If this fails, the caller asks again where errors can be raised.
    #[inline(never)]
    fn by_the_clock(&mut self, argument: S::Argument) -> Option<S::Id> {
        let Self { resumable, own, clock, .. } = self;
        let of_snos = resumable.generator.source.goes_back();
        let now = resumable.admitted(own, |era| clock.read(|| own.time(era, of_snos)), ledger::admits)?;
        let answer = resumable.at(own, now, argument);
        clock.keep(resumable.generator.remaining(now));
        if let Some(Answer::Issue(id)) = answer { Some(id) } else { None }
    }

    /// Makes as many IDs as it can without asking the ledger. Returns how many.
    pub fn fill(&mut self, ids: &mut [S::Id], argument: S::Argument) -> usize {
        let (own, of_snos) = (&self.own, self.source().goes_back());
        let now = self.resumable.admitted(own, |era| own.time(era, of_snos), ledger::admits);
        now.map_or(0, |now| self.resumable.fill(own, now, ids, argument))
    }

    /// Makes an ID, or returns None and says in `wait` what for. Raises an error when the whole wait would take too long.
    #[cold]
    pub fn attempt(&mut self, argument: S::Argument, wait: &mut Wait) -> Result<Option<S::Id>, Error> {
        if wait.lasted().is_zero() {
            ledger::watch_clock();
        }
        let answer = self.resumable.next(&mut self.own, |_, era, now| ledger::admit(era, now), argument);
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

    /// Starts or continues to wait for an instant of flake's time, unless that is too far away.
    fn wait(&mut self, until: i64, reason: Reason, wait: &mut Wait) -> Result<(), Error> {
        self.delays.count(reason, self.resumable.issued());
        let (clock, time) = (clock::now(), self.own.time(self.own.era(), self.source().goes_back()));
        // While IDs lead the clock, flake's time passes at half its speed.
        let ahead = until.saturating_sub(time).max(0);
        let remaining = ahead.saturating_mul(2).min(until.saturating_sub(clock).max(0));
        if reason == Reason::NextTick && remaining > MAX_AHEAD_MICROS {
            let (layout, left) = (self.source().name(), Duration::from_micros(remaining.unsigned_abs()));
            return Err(Error::not_ready(format!("next tick of layout \"{layout}\" is too far away"))
                .detail(format!(
                    "This session has no IDs in the current tick. The next one begins at {}, in {left:?}.",
                    to_text(until)
                ))
                .hint("Wait, or use a layout with a shorter tick."));
        }
        wait.begin(remaining);
        Ok(())
    }

    /// Reports how many IDs it has made, at exit.
    pub fn report(&mut self) {
        self.delays.report(self.resumable.issued());
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
