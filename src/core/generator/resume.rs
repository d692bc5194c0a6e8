//! A generator with its ledger: it begins above used time, and asks the ledger before it enters new time.

use super::source::IdSource;
use super::{Answer, Generator};
use crate::ledger::claims::{self, BUILT_IN, Claim, Counted, ServerWords};
use crate::ledger::host::{Server, SlotOwner};
use crate::ledger::protocol::{self, Beginning, Grant};
use crate::ledger::slot::Start;
use crate::{FinalProgress, Lanes};

/// A clock that is behind by less than this, in microseconds, is waited for at once: another session has read a later instant.
const SOON: i64 = 50;
/// The most readings in such a wait, which take longer.
const READINGS: usize = 5000;

/// A generator, with what it needs to begin again in a new era.
pub struct Resumable<S: IdSource> {
    /// The generator.
    pub generator: Generator<S>,
    claim: Claim,
    lane: u64,
    era: u64,
    /// The era whose time is known to be in the page of the session's database; [`NO_ERA`] if that may have been rolled back.
    page_of: u64,
    issued_before: u64,
}

/// More eras than there can be.
const NO_ERA: u64 = u64::MAX;

/// Which lanes a generator takes from.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The node's lanes.
    pub lanes: Lanes,
    /// The number of the generator's own lane.
    pub lane: u64,
    /// Where the words of the lanes are.
    pub claim: Claim,
}

impl Place {
    /// Finds the words of a source's lanes, or returns None if the custom layouts of this database have as many as they can have.
    pub fn find<S: IdSource>(server: &impl Server, source: &S, lanes: Lanes, lane: u64, database: u32) -> Option<Self> {
        let database = if source.is_built_in() { BUILT_IN } else { database };
        let counted = Counted { key: source.words(), ticks: source.ticks(), lanes, rule: source.rule(), database };
        let claim = if lanes.are_shared { claims::claim(server, &counted)? } else { Claim::NONE };
        Some(Self { lanes, lane, claim })
    }
}

impl<S: IdSource> Resumable<S> {
    /// Begins above used time.
    pub fn begin<H: SlotOwner>(host: &mut H, source: S, place: &Place) -> Result<Self, H::Error> {
        let Beginning { start, era, window } = protocol::begin(host, source.goes_back())?;
        let Place { lanes, lane, claim } = *place;
        // If the clock has stepped back, it may be behind another session's last ID.
        let latest = if lanes.are_shared { claims::latest_of(host, claim, era) } else { None };
        let from = latest.map_or(start.free_from, |latest| latest.saturating_sub(source.ticks().length - 1));
        let start = Start { free_from: start.free_from.max(from), ..start };
        let mut generator = Generator::start(source, &lanes, lane, start);
        generator.allow(window);
        Ok(Self { generator, claim, lane, era, page_of: era, issued_before: 0 })
    }

    /// Begins again in a new era. All ticks that the generator has used lie outside the new era's time.
    fn begin_anew<H: SlotOwner>(&mut self, host: &mut H) -> Result<(), H::Error> {
        let issued_before = self.issued();
        let place = Place { lanes: *self.generator.lanes(), lane: self.lane, claim: self.claim };
        let new = Self::begin(host, self.generator.source, &place)?;
        *self = Self { issued_before, ..new };
        Ok(())
    }

    /// Makes the generator look at the page before its next ID. A transaction that is rolled back may have created the extension, and
    /// with it the page that has the generator's time.
    pub const fn doubt_page(&mut self) {
        self.page_of = NO_ERA;
    }

    /// Returns whether the generator's era is the current one, and its time is in the page. A session asks this whenever it reads the
    /// clock.
    #[inline]
    pub fn is_of(&self, era: u64) -> bool {
        self.page_of == era
    }

    /// Makes an ID at an instant that was admitted, without asking the ledger.
    #[inline]
    pub fn at(&mut self, server: &impl Server, now: i64, argument: S::Argument) -> Answer<S::Id> {
        self.generator.next(now, &ServerWords::new(server, self.claim, self.era), argument)
    }

    /// Makes as many IDs as it can at an instant that was admitted, without asking the ledger. Returns how many.
    pub fn fill(&mut self, server: &impl Server, now: i64, ids: &mut [S::Id], argument: S::Argument) -> usize {
        self.generator.fill(now, &ServerWords::new(server, self.claim, self.era), ids, argument)
    }

    /// Makes an ID at an instant that `admit` returns, and asks the ledger for more time if the generator needs it, so that the answer
    /// is never [`Answer::Outside`] or [`Answer::Dropped`]. After `admit`, the ID is safe: either its era is still the current one, or
    /// a call that ends the era waits for this transaction.
    pub fn next<H: SlotOwner>(
        &mut self,
        host: &mut H,
        mut admit: impl FnMut(&mut H) -> (i64, Result<(), i64>),
        argument: S::Argument,
    ) -> Result<Answer<S::Id>, H::Error> {
        let mut readings = 0;
        loop {
            let (now, admitted) = admit(host);
            let era = host.shared().window.era();
            if !self.is_of(era) {
                if self.era == era {
                    protocol::confirm(host)?;
                    self.page_of = era;
                } else {
                    self.begin_anew(host)?;
                }
                continue;
            }
            let answer = match admitted {
                Ok(()) => self.at(host, now, argument),
                Err(until) => Answer::ClockBehind { until },
            };
            let until = match answer {
                Answer::Outside { tick_end } => {
                    match protocol::grant(host, now, tick_end, self.generator.source.goes_back())? {
                        Grant::Window(window, era) => {
                            if self.is_of(era) {
                                self.generator.allow(window);
                            }
                            continue;
                        }
                        Grant::After(until) => until,
                    }
                }
                Answer::ClockBehind { until } => {
                    // The word of a lane was read after the clock. If the clock has reached it by now, it was not behind. `admit`
                    // has waited itself.
                    let left = until.saturating_sub(host.now());
                    readings += 1;
                    if admitted.is_ok() && left < SOON && readings < READINGS {
                        continue;
                    }
                    until
                }
                Answer::Dropped => continue,
                answer => return Ok(answer),
            };
            if self.is_of(host.shared().window.era()) {
                return Ok(Answer::ClockBehind { until });
            }
        }
    }

    /// IDs made so far.
    pub fn issued(&self) -> u64 {
        self.issued_before + self.generator.issued()
    }

    /// Returns the progress that the generator leaves to its successor.
    pub fn final_progress(&self) -> FinalProgress {
        FinalProgress {
            goes_back: self.generator.source.goes_back(),
            era: self.era,
            progress: self.generator.progress(),
        }
    }
}
