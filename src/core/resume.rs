//! A generator that resumes: it continues where its slot's last owner stopped, and asks the ledger before it enters new
//! time.

use crate::{Answer, FinalProgress, Generator, Layout, Progress, Share, SnoGenerator, Start, Window, absent};

/// How a generator reaches the ledger that the sessions of a server share.
pub trait LedgerAccess {
    /// Why the ledger could not answer.
    type Error;
    /// Returns what a generator with this key begins with.
    fn begin(&self, key: u64) -> Beginning;
    /// Returns the present era.
    fn era(&self) -> u64;
    /// Asks for the tick that holds `now` and ends at `tick_end`. `goes_back` says that the generator can go back in
    /// time.
    fn grant(&self, now: i64, tick_end: i64, goes_back: bool) -> Result<Grant, Self::Error>;
}

/// What a generator begins with.
#[derive(Debug, Clone, Copy)]
pub struct Beginning {
    /// The first unused tick, or the progress to resume from.
    pub start: Start,
    /// The latest present instant that earlier sessions have seen.
    pub last_seen: i64,
    /// The era in which this holds.
    pub era: u64,
    /// The time that the generator may use without asking.
    pub window: Window,
}

/// The answer to a request for time.
#[derive(Debug, Clone, Copy)]
pub enum Grant {
    /// The generator may use this time, in this era.
    Window(Window, u64),
    /// The generator may use no time before this instant.
    After(i64),
}

/// A generator that can resume from the progress of an earlier one.
pub trait Resume: Sized {
    /// The type of its IDs.
    type Id;
    /// What it is built from: its layout and share.
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
    pub fn begin(ledger: &impl LedgerAccess, key: u64, origin: G::Origin) -> Self {
        let Beginning { start, last_seen, era, window } = ledger.begin(key);
        let mut generator = G::start(&origin, start, last_seen);
        generator.allow(window);
        Self { generator, key, origin, era, issued_before: 0 }
    }

    /// Calls `attempt`, which returns the generator's answer and the instant it was asked for, and asks the ledger for
    /// more time where the generator needs it.
    pub fn next<A: LedgerAccess>(
        &mut self,
        ledger: &A,
        mut attempt: impl FnMut(&mut G) -> (i64, Answer<G::Id>),
    ) -> Result<Answer<G::Id>, A::Error> {
        loop {
            let (now, answer) = attempt(&mut self.generator);
            let until = match answer {
                Answer::Outside { tick_end } => match ledger.grant(now, tick_end, G::GOES_BACK)? {
                    Grant::Window(window, era) if era == self.era || absent!(ResumeEra) => {
                        self.generator.allow(window);
                        continue;
                    }
                    // A new era has begun.
                    Grant::Window(..) => now,
                    Grant::After(until) => until,
                },
                Answer::ClockBehind { until } => until,
                answer => return Ok(answer),
            };
            if ledger.era() == self.era || absent!(ResumeAnew) {
                return Ok(Answer::ClockBehind { until });
            }
            let issued_before = self.issued();
            // All ticks that the generator has used lie outside the new era's time.
            let Beginning { start, last_seen, era, window } = ledger.begin(self.key);
            self.generator = G::start(&self.origin, start, last_seen);
            self.generator.allow(window);
            (self.era, self.issued_before) = (era, issued_before);
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

/// What the generator of a layout is built from.
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

impl Resume for SnoGenerator {
    type Id = crate::Sno;
    type Origin = Share;
    const GOES_BACK: bool = true;

    fn start(share: &Share, start: Start, last_seen: i64) -> Self {
        Self::start(*share, start, last_seen)
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
