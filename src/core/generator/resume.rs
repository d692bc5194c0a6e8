//! A generator that resumes: it continues where its slot's last owner stopped, and asks the ledger before it enters new
//! time.

use super::{Answer, Generator};
use crate::ledger::host::Host;
use crate::ledger::protocol::{self, Beginning, Grant};
use crate::{FinalProgress, Layout, Progress, Share, Start, Window};

/// A generator that can resume from the progress of an earlier one.
pub trait Resume: Sized {
    /// The type of its IDs.
    type Id;
    /// The layout and share that it is built from.
    type Origin;
    /// Whether it continues in the past when the clock steps back.
    const GOES_BACK: bool;
    /// Begins as the ledger says.
    fn start(origin: &Self::Origin, start: Start, last_seen: i64) -> Self;
    /// See [`Generator::allow`].
    fn allow(&mut self, window: Window);
    /// See [`Generator::progress`].
    fn progress(&self) -> Progress;
    /// See [`Generator::issued`].
    fn issued(&self) -> u64;
}

/// A generator together with what it needs to begin again when the ledger starts a new era.
pub struct Resumable<G: Resume> {
    /// The generator.
    pub generator: G,
    key: u64,
    origin: G::Origin,
    era: u64,
    issued_before: u64,
}

impl<G: Resume> Resumable<G> {
    /// Begins where the slot's last owner stopped.
    pub fn begin<H: Host>(host: &mut H, key: u64, origin: G::Origin) -> Result<Self, H::Error> {
        let Beginning { start, last_seen, era, window } = protocol::begin(host, key)?;
        let mut generator = G::start(&origin, start, last_seen);
        generator.allow(window);
        Ok(Self { generator, key, origin, era, issued_before: 0 })
    }

    /// Begins anew in another era: all ticks that the generator has used lie outside its time.
    fn begin_anew<H: Host>(&mut self, host: &mut H) -> Result<(), H::Error> {
        let issued_before = self.issued();
        let Beginning { start, last_seen, era, window } = protocol::begin(host, self.key)?;
        self.generator = G::start(&self.origin, start, last_seen);
        self.generator.allow(window);
        (self.era, self.issued_before) = (era, issued_before);
        Ok(())
    }

    /// Returns whether the generator's era is the present one. It is asked wherever the clock is read.
    #[inline]
    pub fn is_of(&self, era: u64) -> bool {
        self.era == era
    }

    /// Has `make` make an ID at an instant that `admit` admits, and asks the ledger for more time where the generator needs it.
    /// An ID that was admitted is one of the present era, or somebody waits for the end of its transaction.
    pub fn next<H: Host>(
        &mut self,
        host: &mut H,
        mut admit: impl FnMut(&mut H) -> (i64, Result<(), i64>),
        mut make: impl FnMut(&mut G, i64) -> Answer<G::Id>,
    ) -> Result<Answer<G::Id>, H::Error> {
        loop {
            let (now, admitted) = admit(host);
            if !self.is_of(host.shared().window.era()) {
                self.begin_anew(host)?;
                continue;
            }
            let until = match admitted
                .map_or_else(|until| Answer::ClockBehind { until }, |()| make(&mut self.generator, now))
            {
                Answer::Outside { tick_end } => match protocol::grant(host, now, tick_end, G::GOES_BACK)? {
                    Grant::Window(window, era) => {
                        if self.is_of(era) {
                            self.generator.allow(window);
                        }
                        continue;
                    }
                    Grant::After(until) => until,
                },
                Answer::ClockBehind { until } => until,
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

    /// Returns what the generator leaves to its successor.
    pub fn final_progress(&self) -> FinalProgress {
        FinalProgress { key: self.key, era: self.era, progress: self.generator.progress() }
    }
}

impl Resumable<Generator> {
    /// Goes on for a layout of the same bits.
    pub fn adopt(&mut self, layout: &Layout) {
        self.generator.adopt(layout);
        self.origin.layout = layout.clone();
    }
}

/// The parts that the generator of a layout is built from.
pub struct Origin {
    /// The layout.
    pub layout: Layout,
    /// The share.
    pub share: Share,
    /// The position at which a rolling sequence begins.
    pub position: u64,
}

impl Resume for Generator {
    type Id = u64;
    type Origin = Origin;
    const GOES_BACK: bool = false;

    fn start(origin: &Origin, start: Start, last_seen: i64) -> Self {
        Self::start(&origin.layout, &origin.share, start, last_seen, origin.position)
    }

    fn allow(&mut self, window: Window) {
        self.allow(window);
    }

    fn progress(&self) -> Progress {
        self.progress()
    }

    fn issued(&self) -> u64 {
        self.issued()
    }
}
