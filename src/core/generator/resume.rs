//! A generator with its ledger: it begins above the floor of an era, asks for time before it uses it, and lets IDs lead the clock.

use super::source::IdSource;
use super::{Answer, Generator};
use crate::ledger::cursors::claims::{self, BUILT_IN, ServerCursors};
use crate::ledger::durable::page::ensure_page_current;
use crate::ledger::host::{Fault, Host, Server};
use crate::ledger::time::grant::{GeneratorStart, Grant, begin, grant};
use crate::ledger::time::lead::lead;
use crate::ledger::time::shared::generation_of;
use crate::{Error, Lanes, Part};

/// IDs lead the clock to the floor, but not to the first tick after it if a layout's ticks last this long, in microseconds: all layouts
/// would lead.
const LONG_TICK_MICROS: i64 = 1_000_000;
/// More eras than there can be.
const NO_ERA: u64 = u64::MAX;

/// A generator, with what it needs to begin again in a new era.
pub struct Resumable<S: IdSource> {
    /// The generator.
    pub generator: Generator<S>,
    place: Place,
    era: u64,
    /// In this era, no ID is made in a tick that begins before this instant.
    floor: i64,
    /// The era whose time is known to be in the page of the session's database; [`NO_ERA`] if that may have been rolled back.
    page_era: u64,
    /// In this era, IDs of instants before this one may be made.
    limit: i64,
    issued_before: u64,
}

/// Which lanes a generator takes from.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The server's lanes in each generation.
    pub lanes: [Lanes; 2],
    /// The number of the generator's own lane.
    pub lane: u64,
    /// The first of the lines that have the cursors of the lanes.
    pub first_line: usize,
}

/// Returns the lanes of a source in a server's parts, one for each generation.
///
/// # Errors
/// See [`Lanes::new`].
pub fn lanes_of(source: &impl IdSource, [one, other]: [Part; 2]) -> Result<[Lanes; 2], Error> {
    Ok([source.lanes(one)?, source.lanes(other)?])
}

impl Place {
    /// Finds the cursors of a source's lanes, or returns None if the custom layouts of this database have as many as they can have.
    pub fn find<S: IdSource>(
        server: &impl Server,
        source: &S,
        lanes: [Lanes; 2],
        lane: u64,
        database: u32,
    ) -> Option<Self> {
        debug_assert_eq!(lanes[0].count, lanes[1].count, "the generations have lines in common");
        let database = if source.is_built_in() { BUILT_IN } else { database };
        Some(Self { lanes, lane, first_line: claims::claim(server, source.cursors(), &lanes[0], database)? })
    }
}

impl<S: IdSource> Resumable<S> {
    /// Begins above the floor.
    pub fn begin<H: Host>(host: &mut H, source: S, place: &Place) -> Result<Self, H::Error> {
        let GeneratorStart { era, floor, limit } = begin(host)?;
        let generator = Generator::start(source, &place.lanes[generation_of(era)], place.lane, floor);
        Ok(Self { generator, place: *place, era, floor, page_era: era, limit, issued_before: 0 })
    }

    /// Begins again in a new era, or makes sure that the page has the time of this one.
    fn begin_again<H: Host>(&mut self, host: &mut H, era: u64) -> Result<(), H::Error> {
        if self.era == era {
            ensure_page_current(host)?;
            self.page_era = era;
            return Ok(());
        }
        let issued_before = self.issued();
        let new = Self::begin(host, self.generator.source, &self.place)?;
        *self = Self { issued_before, ..new };
        Ok(())
    }

    /// Makes the generator look at the page before its next ID. A transaction that is rolled back may have created the extension, and
    /// with it the page that has the generator's time.
    pub const fn invalidate_page(&mut self) {
        self.page_era = NO_ERA;
    }

    /// Returns whether the generator's era is this one, and its time is in the page.
    #[inline]
    pub fn is_of(&self, era: u64) -> bool {
        self.page_era == era
    }

    /// Returns flake's time, which `read` reads in the generator's era, if IDs of it may be made without asking the ledger. `admits`
    /// publishes the bound of the transaction.
    #[inline]
    pub fn admitted(
        &self,
        server: &impl Server,
        read: impl FnOnce(u64) -> i64,
        admits: impl FnOnce(u64, i64) -> bool,
    ) -> Option<i64> {
        let era = server.shared().era();
        if !self.is_of(era) {
            return None;
        }
        let now = read(era);
        // A call that ends the era from here on waits for this transaction if it must.
        (admits(era, now) && server.shared().era() == era).then_some(now)
    }

    fn cursors<'a, H: Server>(&self, server: &'a H) -> ServerCursors<'a, H> {
        ServerCursors::new(server, self.place.first_line, self.era)
    }

    /// Makes an ID at an instant that was admitted, without asking the ledger. Returns None if the time must be granted first.
    #[inline]
    pub fn at(&mut self, server: &impl Server, now: i64, argument: S::Argument) -> Option<Answer<S::Id>> {
        (now < self.limit).then(|| self.generator.next(now, &self.cursors(server), argument))
    }

    /// Makes as many IDs as it can at an instant that was admitted, without asking the ledger. Returns how many.
    pub fn fill(&mut self, server: &impl Server, now: i64, ids: &mut [S::Id], argument: S::Argument) -> usize {
        if now < self.limit { self.generator.fill(now, &self.cursors(server), ids, argument) } else { 0 }
    }

    /// Makes an ID at flake's time, once `admit` lets the transaction make IDs of an instant in an era; its error is an announced
    /// watermark that is later. Asks for time and lets IDs lead the clock if necessary, so that the answer is an ID, a tick to wait for,
    /// or [`Answer::Exhausted`].
    ///
    /// # Errors
    /// [`Fault::Lead`] if no time is granted; the server's errors.
    pub fn next<H: Host>(
        &mut self,
        host: &mut H,
        mut admit: impl FnMut(&mut H, u64, i64) -> Result<(), i64>,
        argument: S::Argument,
    ) -> Result<Answer<S::Id>, H::Error> {
        let of_snos = self.generator.source.goes_back();
        loop {
            let era = host.shared().era();
            if !self.is_of(era) {
                self.begin_again(host, era)?;
                continue;
            }
            let now = host.time(era, of_snos);
            let admitted = admit(host, era, now);
            // A call that ends the era from here on waits for this transaction if it must.
            if host.shared().era() != era {
                continue;
            }
            let from = match admitted.map(|()| self.at(host, now, argument)) {
                Err(announced) => announced,
                Ok(None) => {
                    self.ask(host, era, now)?;
                    continue;
                }
                Ok(Some(Answer::Dropped)) => continue,
                Ok(Some(Answer::Behind { until })) => {
                    let fresh = host.time(era, of_snos);
                    if fresh >= until || self.generator.step_back(fresh, &self.cursors(host)) {
                        continue;
                    }
                    until
                }
                Ok(Some(Answer::Closed { until })) if self.generator.source.ticks().length < LONG_TICK_MICROS => until,
                Ok(Some(Answer::Closed { .. })) if now < self.floor => self.floor,
                Ok(Some(answer)) => return Ok(answer),
            };
            if host.time(era, of_snos) < from {
                lead(host, era, of_snos, from);
            }
        }
    }

    /// Asks for the time of an instant.
    fn ask<H: Host>(&mut self, host: &mut H, era: u64, now: i64) -> Result<(), H::Error> {
        match grant(host, era, now)? {
            Grant::Until(limit) => self.limit = limit,
            Grant::Over => {}
            Grant::TooFar(lead) => return Err(Fault::Lead(lead, host.max_lead()).into()),
        }
        Ok(())
    }

    /// IDs made so far.
    pub fn issued(&self) -> u64 {
        self.issued_before + self.generator.issued()
    }
}
