//! What keeps a generator from making an ID at once: counted, and waited for.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flake_core::session::{Session, Successor};
use flake_core::{Error, Step, Trace};

use crate::session::wait::{Reason, Wait};
use crate::clock;
use crate::ledger;
use crate::postgres::settings;

/// How often a generator had to wait, and why.
#[derive(Default)]
pub struct Delays {
    pub overflow_waits: u64,
    pub clock_steps: u64,
    pub waited: Duration,
    /// The last delay, and how many IDs had been made until then.
    last: Option<(Reason, u64)>,
    /// IDs that the ledger has been told of.
    reported: u64,
}

impl Delays {
    /// Counts a delay of a generator that has `issued` IDs, once however often it is asked meanwhile.
    fn note(&mut self, delay: Reason, issued: u64) {
        if self.last.replace((delay, issued)) == Some((delay, issued)) {
            return;
        }
        let control = ledger::control();
        match delay {
            // Before the first ID it is the tick of creation that is waited for, not a share that is used up.
            Reason::NextTick if issued == 0 => {}
            Reason::NextTick => {
                self.overflow_waits += 1;
                control.inspect(|control| _ = control.counters.overflow_waits.fetch_add(1, Ordering::Relaxed));
            }
            Reason::Clock => {
                self.clock_steps += 1;
                control.inspect(|control| {
                    control.counters.clock_waits.fetch_add(1, Ordering::Relaxed);
                    ledger::watch_clock(control);
                });
            }
        }
    }

    /// Adds to what the ledger knows of.
    pub fn report(&mut self, issued: u64) {
        let new = issued - std::mem::replace(&mut self.reported, issued);
        ledger::control().inspect(|control| _ = control.counters.issued.fetch_add(new, Ordering::Relaxed));
    }

    /// The last report: key, era and trace of a generator whose session ends.
    pub fn leave<G: Successor>(&mut self, session: &Session<G>) -> (u64, u64, Trace) {
        self.report(session.issued());
        let (era, trace) = session.trace();
        (session.key, era, trace)
    }
}

/// A generator of this session, which is not borrowed between two calls: a wait may end the session.
pub trait Asked {
    /// What it makes.
    type Id;
    /// Its answer to the present instant.
    fn ask(&self) -> Result<Step<Self::Id>, Error>;
    /// Acts on its delays, knowing how many IDs it has made.
    fn delays(&self, act: impl FnOnce(&mut Delays, u64));
    /// The layout of its IDs.
    fn layout(&self) -> Cow<'static, str>;
    /// The error of a used-up timestamp.
    fn exhausted(&self) -> Error;
}

/// Asks until there is an ID, or until the clock has been behind for too long.
#[cold]
pub fn wait_for_id<G: Asked>(generator: &G) -> Result<G::Id, Error> {
    let mut wait: Option<Wait> = None;
    let result = loop {
        let (until, reason) = match generator.ask() {
            Ok(Step::Issue(id)) => break Ok(id),
            Ok(Step::Exhausted) => break Err(generator.exhausted()),
            Ok(Step::Wait { until }) => (until, Reason::NextTick),
            Ok(Step::ClockBehind { until }) => (until, Reason::Clock),
            // The window is between two others; the next answer says which.
            Ok(Step::Outside { .. }) => continue,
            Err(error) => break Err(error),
        };
        generator.delays(|delays, issued| delays.note(reason, issued));
        let wait = wait.get_or_insert_with(Wait::start);
        let now = clock::now();
        if let Reason::Clock = reason {
            let patience = settings::max_clock_wait().max(ledger::restart_wait(until));
            if wait.lasted().max(micros(until - now)) > patience {
                let patience = patience.as_micros() as i64;
                break Err(Error::ClockBehind { layout: generator.layout(), now, until, patience });
            }
        }
        wait.pause(until - now, reason);
    };
    if let Some(wait) = wait {
        let waited = wait.lasted();
        generator.delays(|delays, _| delays.waited += waited);
        let micros = waited.as_micros() as u64;
        ledger::control().inspect(|control| _ = control.counters.longest_wait.fetch_max(micros, Ordering::Relaxed));
    }
    result
}

fn micros(microseconds: i64) -> Duration {
    Duration::from_micros(microseconds.max(0).unsigned_abs())
}
