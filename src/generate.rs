//! Making IDs: this session's generators, and what happens when one cannot answer at once.

use std::cell::RefCell;
use std::time::Duration;

use flake_core::{Error, Generator, Layout, Numbers, Share, Step};
use pgrx::datum::{Interval, Range, RangeBound, TimestampWithTimeZone};
use pgrx::prelude::*;

use crate::error::{OrRaise, raise};
use crate::layouts::{by_name, sql_instant};
use crate::wait::Wait;
use crate::{clock, place, settings};

/// A generator of this session, and what has happened to it.
struct Source {
    layout: &'static Layout,
    share: Share,
    generator: Generator,
    overflow_waits: u64,
    clock_steps: u64,
    waited: Duration,
    /// The clock was behind when it was last asked for.
    behind: bool,
}

/// The generators of this session, the one used last in front.
struct Sources(Vec<Source>);

thread_local! {
    static SOURCES: RefCell<Sources> = const { RefCell::new(Sources(Vec::new())) };
}

impl Sources {
    #[inline]
    fn select(&mut self, layout: &[u8]) -> &mut Source {
        if !matches!(self.0.first(), Some(first) if first.layout.name().as_bytes() == layout) {
            self.bring_to_front(layout);
        }
        &mut self.0[0]
    }

    #[cold]
    fn bring_to_front(&mut self, layout: &[u8]) {
        let layout = by_name(layout);
        let known = self.0.iter().position(|source| std::ptr::eq(source.layout, layout));
        let place = known.unwrap_or_else(|| {
            self.0.push(Source::new(layout).or_raise());
            self.0.len() - 1
        });
        self.0.swap(0, place);
    }
}

impl Source {
    fn new(layout: &'static Layout) -> Result<Self, Error> {
        refuse_in_recovery();
        let share = Share::new(layout, place::node()?, place::slot()?)?;
        // A sequence that rolls begins anywhere, so that short sessions do not all use the same numbers.
        let generator = Generator::above(layout, &share, clock::now(), rand::random())?;
        let (overflow_waits, clock_steps, waited) = Default::default();
        Ok(Self { layout, share, generator, overflow_waits, clock_steps, waited, behind: false })
    }

    #[inline]
    fn next(&mut self) -> Step {
        self.generator.next(clock::now(), rand::random)
    }
}

/// IDs made on a standby could be the primary's: refused in the words that nextval() uses.
#[allow(unsafe_code, reason = "pgrx has no safe form of it")]
fn refuse_in_recovery() {
    // SAFETY: takes a C string and raises an error or does nothing.
    unsafe { pg_sys::PreventCommandDuringRecovery(c"flake_next()".as_ptr()) }
}

#[pg_extern(sql = "")]
fn flake_next(layout: &[u8]) -> i64 {
    match SOURCES.with_borrow_mut(|sources| sources.select(layout).next()) {
        Step::Issue(id) => id as i64,
        step => next_after_waiting(layout, step),
    }
}

/// Asks again until there is an ID. The generators are not borrowed during a pause, which may end in an error.
#[cold]
fn next_after_waiting(layout: &[u8], mut step: Step) -> i64 {
    let mut wait = Wait::start();
    let patience = settings::max_clock_wait();
    SOURCES.with_borrow_mut(|sources| sources.select(layout).count(step));
    loop {
        match step {
            Step::Issue(id) => {
                SOURCES.with_borrow_mut(|sources| {
                    let source = sources.select(layout);
                    source.waited += wait.lasted();
                    source.behind = false;
                });
                return id as i64;
            }
            Step::Wait { until } => wait.pause(until - clock::now()),
            Step::ClockBehind { until } => {
                let now = clock::now();
                let behind = Duration::from_micros((until - now).max(0).unsigned_abs());
                if behind > patience || wait.lasted() > patience {
                    let layout = by_name(layout).name().to_owned().into();
                    raise(Error::ClockBehind { layout, now, until, patience: patience.as_micros() as i64 });
                }
                wait.pause(until - now);
            }
            Step::Exhausted => raise(by_name(layout).exhausted()),
        }
        step = SOURCES.with_borrow_mut(|sources| sources.select(layout).next());
    }
}

impl Source {
    fn count(&mut self, step: Step) {
        match step {
            // Before the first ID it is the tick of creation that is waited for, not a share that is used up.
            Step::Wait { .. } => self.overflow_waits += u64::from(self.generator.issued() > 0),
            Step::ClockBehind { .. } => {
                self.clock_steps += u64::from(!self.behind);
                self.behind = true;
            }
            Step::Issue(_) | Step::Exhausted => {}
        }
    }
}

#[pg_extern(sql = "")]
#[allow(clippy::type_complexity, reason = "the columns of a view")]
fn flake_generators() -> TableIterator<
    'static,
    (
        name!(layout, String),
        name!(workers, Range<i64>),
        name!(sequences, Range<i64>),
        name!(ids_per_tick, i64),
        name!(last_tick, Option<TimestampWithTimeZone>),
        name!(issued, i64),
        name!(overflow_waits, i64),
        name!(clock_steps, i64),
        name!(waited, Interval),
    ),
> {
    let row = |source: &Source| {
        (
            source.layout.name().to_owned(),
            range(source.share.workers),
            range(source.share.sequences),
            source.share.size() as i64,
            source.generator.last_tick_start().map(sql_instant),
            source.generator.issued() as i64,
            source.overflow_waits as i64,
            source.clock_steps as i64,
            Interval::from_micros(source.waited.as_micros() as i64),
        )
    };
    TableIterator::new(SOURCES.with_borrow(|sources| sources.0.iter().map(row).collect::<Vec<_>>()))
}

fn range(numbers: Numbers) -> Range<i64> {
    let end = numbers.first + numbers.count;
    Range::new(RangeBound::Inclusive(numbers.first as i64), RangeBound::Exclusive(end as i64))
}
