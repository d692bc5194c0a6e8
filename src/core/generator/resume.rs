//! A generator with its ledger: it continues where the last owner of its slot stopped, and asks the ledger before it enters new
//! time.

use super::source::IdSource;
use super::{Answer, Generator};
use crate::ledger::host::Host;
use crate::ledger::protocol::{self, Beginning, Grant};
use crate::{FinalProgress, Share};

/// The outcome of asking for an ID.
#[allow(missing_docs, reason = "the outcomes say what their instants are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<Id = u64> {
    /// A new ID.
    Made(Id),
    /// There is no ID before this instant.
    After { until: i64, reason: Reason },
    /// The clock is past the last tick.
    Exhausted,
}

/// The reason why a session waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The next tick, because the share is used up in this one.
    NextTick,
    /// The clock, which the last ID is ahead of within its tick.
    Pace,
    /// A clock that is behind the last ID.
    ClockBehind,
}

/// A generator, with what it needs to begin again in a new era.
pub struct Resumable<S: IdSource> {
    /// The generator.
    pub generator: Generator<S>,
    /// The position at which a rolling sequence begins.
    position: u64,
    era: u64,
    issued_before: u64,
}

impl<S: IdSource> Resumable<S> {
    /// Begins where the last owner of the slot stopped. A rolling sequence that does not resume begins at `position`.
    pub fn begin<H: Host>(host: &mut H, source: S, share: &Share, position: u64) -> Result<Self, H::Error> {
        let Beginning { start, last_seen, era, window } = protocol::begin(host, source.key())?;
        let start = start.before(window.skip, source.ticks().length);
        let mut generator = Generator::start(source, share, start, last_seen, position);
        generator.allow(window);
        Ok(Self { generator, position, era, issued_before: 0 })
    }

    /// Begins again in a new era. All ticks that the generator has used lie outside the new era's time.
    fn begin_anew<H: Host>(&mut self, host: &mut H) -> Result<(), H::Error> {
        let issued_before = self.issued();
        let new = Self::begin(host, self.generator.source, self.generator.share(), self.position)?;
        *self = Self { issued_before, ..new };
        Ok(())
    }

    /// Returns whether the generator's era is the current one. A session asks this whenever it reads the clock.
    #[inline]
    pub fn is_of(&self, era: u64) -> bool {
        self.era == era
    }

    /// Makes an ID at an instant that `admit` returns, and asks the ledger for more time if the generator needs it. After `admit`,
    /// the ID is safe: either its era is still the current one, or a call that ends the era waits for this transaction.
    pub fn next<H: Host>(
        &mut self,
        host: &mut H,
        mut admit: impl FnMut(&mut H) -> (i64, Result<(), i64>),
        argument: S::Argument,
    ) -> Result<Outcome<S::Id>, H::Error> {
        loop {
            let (now, admitted) = admit(host);
            if !self.is_of(host.shared().window.era()) {
                self.begin_anew(host)?;
                continue;
            }
            let until = match admitted
                .map_or_else(|until| Answer::ClockBehind { until }, |()| self.generator.next(now, argument))
            {
                Answer::Outside { tick_end } => match protocol::grant(host, now, tick_end, S::GOES_BACK)? {
                    Grant::Window(window, era) => {
                        if self.is_of(era) {
                            self.generator.allow(window);
                        }
                        continue;
                    }
                    Grant::After(until) => until,
                },
                Answer::ClockBehind { until } => until,
                Answer::Issue(id) => return Ok(Outcome::Made(id)),
                Answer::Wait { until } => return Ok(Outcome::After { until, reason: Reason::NextTick }),
                Answer::Ahead { until } => return Ok(Outcome::After { until, reason: Reason::Pace }),
                Answer::Exhausted => return Ok(Outcome::Exhausted),
            };
            if self.is_of(host.shared().window.era()) {
                return Ok(Outcome::After { until, reason: Reason::ClockBehind });
            }
        }
    }

    /// IDs made so far.
    pub fn issued(&self) -> u64 {
        self.issued_before + self.generator.issued()
    }

    /// Returns the progress that the generator leaves to its successor.
    pub fn final_progress(&self) -> FinalProgress {
        FinalProgress { key: self.generator.source.key(), era: self.era, progress: self.generator.progress() }
    }
}
