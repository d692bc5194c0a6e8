//! Making IDs: this session's generators, and what happens when one cannot answer at once.

use std::cell::RefCell;
use std::time::Duration;

use flake_core::{Error, Generator, Layout, Share, Step};
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::layouts::by_name;
use crate::wait::Wait;
use crate::{clock, custom, place, settings};

/// A generator of this session, and what has happened to it.
pub struct SessionGenerator {
    pub layout: &'static Layout,
    pub share: Share,
    pub generator: Generator,
    pub overflow_waits: u64,
    pub clock_steps: u64,
    pub waited: Duration,
    /// Why it last had no ID, and how many it had made until then.
    last_delay: Option<(Delay, u64)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Delay {
    Overflow,
    ClockBehind,
}

/// The generators of this session, the one used last in front.
struct Generators {
    list: Vec<SessionGenerator>,
    /// Since how many changes of custom layouts the front one's name stands for its layout.
    since: u64,
}

thread_local! {
    static GENERATORS: RefCell<Generators> = const { RefCell::new(Generators { list: Vec::new(), since: 0 }) };
}

impl Generators {
    #[inline]
    fn select(&mut self, layout: &[u8]) -> &mut SessionGenerator {
        if !matches!(self.list.first(), Some(front) if front.layout.name().as_bytes() == layout)
            || self.since != custom::changes()
        {
            self.bring_to_front(layout);
        }
        &mut self.list[0]
    }

    #[cold]
    fn bring_to_front(&mut self, layout: &[u8]) {
        let changes = custom::changes();
        let layout = by_name(layout);
        // Layouts of the same bits under different names share a generator, which goes by the name used last.
        let known = self.list.iter().position(|own| own.layout.same_bits(layout));
        let place = known.unwrap_or_else(|| {
            self.list.push(SessionGenerator::new(layout).or_raise());
            self.list.len() - 1
        });
        self.list[place].layout = layout;
        self.list.swap(0, place);
        self.since = changes;
    }
}

impl SessionGenerator {
    fn new(layout: &'static Layout) -> Result<Self, Error> {
        if !layout.generates() {
            return Err(Error::ReadOnly { layout: layout.name().to_owned().into() });
        }
        refuse_in_recovery();
        let share = Share::new(layout, place::node()?, place::slot()?)?;
        // A sequence that rolls begins anywhere, so that short sessions do not all use the same numbers.
        let generator = Generator::above(layout, &share, clock::now(), rand::random())?;
        let (overflow_waits, clock_steps, waited, last_delay) = Default::default();
        Ok(Self { layout, share, generator, overflow_waits, clock_steps, waited, last_delay })
    }

    #[inline]
    fn next(&mut self) -> Step {
        self.generator.next(clock::now(), rand::random)
    }

    /// Counts what keeps it from making an ID, once however often it is asked meanwhile.
    fn note(&mut self, step: Step) {
        let issued = self.generator.issued();
        let delay = match step {
            Step::Wait { .. } => Delay::Overflow,
            Step::ClockBehind { .. } => Delay::ClockBehind,
            Step::Issue(_) | Step::Exhausted => return,
        };
        if self.last_delay.replace((delay, issued)) == Some((delay, issued)) {
            return;
        }
        match delay {
            // Before the first ID it is the tick of creation that is waited for, not a share that is used up.
            Delay::Overflow => self.overflow_waits += u64::from(issued > 0),
            Delay::ClockBehind => self.clock_steps += 1,
        }
    }
}

/// Acts on this session's generator of a layout, which is made when there is none.
#[inline]
fn own<R>(layout: &[u8], act: impl FnOnce(&mut SessionGenerator) -> R) -> R {
    GENERATORS.with_borrow_mut(|generators| act(generators.select(layout)))
}

/// Does something with each of this session's generators.
pub fn each<R>(act: impl FnMut(&SessionGenerator) -> R) -> Vec<R> {
    GENERATORS.with_borrow(|generators| generators.list.iter().map(act).collect())
}

/// IDs made on a standby could be the primary's: refused in the words that nextval() uses.
#[allow(unsafe_code, reason = "pgrx has no safe form of it")]
fn refuse_in_recovery() {
    // SAFETY: takes a C string and raises an error or does nothing.
    unsafe { pg_sys::PreventCommandDuringRecovery(c"flake_next()".as_ptr()) }
}

#[pg_extern(sql = "")]
fn flake_next(layout: &[u8]) -> i64 {
    match own(layout, SessionGenerator::next) {
        Step::Issue(id) => id as i64,
        step => next_after_waiting(layout, step),
    }
}

#[pg_extern(sql = "")]
fn flake_next_tagged(layout: &[u8], tag: i32) -> i64 {
    let tag = by_name(layout).tag_bits(tag.into()).or_raise();
    flake_next(layout) | tag as i64
}

/// Asks again until there is an ID, or until the clock has been behind for too long. The generators are not borrowed
/// during a pause, which may end the session.
#[cold]
fn next_after_waiting(layout: &[u8], mut step: Step) -> i64 {
    let patience = settings::max_clock_wait();
    let mut wait = Wait::start();
    loop {
        own(layout, |own| own.note(step));
        let now = clock::now();
        let result = match step {
            Step::Issue(id) => Ok(id as i64),
            Step::Exhausted => Err(by_name(layout).exhausted()),
            Step::ClockBehind { until } if wait.lasted().max(micros(until - now)) > patience => {
                let layout = by_name(layout).name().to_owned().into();
                Err(Error::ClockBehind { layout, now, until, patience: patience.as_micros() as i64 })
            }
            Step::Wait { until } | Step::ClockBehind { until } => {
                wait.pause(until - now);
                step = own(layout, SessionGenerator::next);
                continue;
            }
        };
        own(layout, |own| own.waited += wait.lasted());
        return result.or_raise();
    }
}

fn micros(microseconds: i64) -> Duration {
    Duration::from_micros(microseconds.max(0).unsigned_abs())
}
