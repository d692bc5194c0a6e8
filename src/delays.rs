//! What keeps a generator from making an ID at once: counted, and waited for.

use std::borrow::Cow;
use std::time::Duration;

use flake_core::{Error, Step};

use crate::wait::Wait;
use crate::{clock, settings};

/// How often a generator had to wait, and why.
#[derive(Default)]
pub struct Delays {
    pub overflow_waits: u64,
    pub clock_steps: u64,
    pub waited: Duration,
    /// The last delay, and how many IDs had been made until then.
    last: Option<(Delay, u64)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Delay {
    Overflow,
    ClockBehind,
}

impl Delays {
    /// Counts what a generator that has `issued` IDs answers, once however often it is asked meanwhile.
    fn note<Id>(&mut self, step: &Step<Id>, issued: u64) {
        let delay = match step {
            Step::Wait { .. } => Delay::Overflow,
            Step::ClockBehind { .. } => Delay::ClockBehind,
            Step::Issue(_) | Step::Exhausted => return,
        };
        if self.last.replace((delay, issued)) == Some((delay, issued)) {
            return;
        }
        match delay {
            // Before the first ID it is the tick of creation that is waited for, not a share that is used up.
            Delay::Overflow => self.overflow_waits += u64::from(issued > 0),
            Delay::ClockBehind => self.clock_steps += 1,
        }
    }
}

/// A generator of this session, which is not borrowed between two calls: a wait may end the session.
pub trait Asked {
    /// What it makes.
    type Id: Copy;
    /// Its answer to the present instant.
    fn next(&self) -> Step<Self::Id>;
    /// Acts on its delays, knowing how many IDs it has made.
    fn delays(&self, act: impl FnOnce(&mut Delays, u64));
    /// The layout of its IDs.
    fn layout(&self) -> Cow<'static, str>;
    /// The error of a used-up timestamp.
    fn exhausted(&self) -> Error;
}

/// Asks again until there is an ID, or until the clock has been behind for too long.
#[cold]
pub fn wait_for_id<G: Asked>(generator: &G, mut step: Step<G::Id>) -> Result<G::Id, Error> {
    let patience = settings::max_clock_wait();
    let mut wait = Wait::start();
    loop {
        generator.delays(|delays, issued| delays.note(&step, issued));
        let now = clock::now();
        let result = match step {
            Step::Issue(id) => Ok(id),
            Step::Exhausted => Err(generator.exhausted()),
            Step::ClockBehind { until } if wait.lasted().max(micros(until - now)) > patience => {
                let patience = patience.as_micros() as i64;
                Err(Error::ClockBehind { layout: generator.layout(), now, until, patience })
            }
            Step::Wait { until } | Step::ClockBehind { until } => {
                wait.pause(until - now);
                step = generator.next();
                continue;
            }
        };
        generator.delays(|delays, _| delays.waited += wait.lasted());
        return result;
    }
}

fn micros(microseconds: i64) -> Duration {
    Duration::from_micros(microseconds.max(0).unsigned_abs())
}
