//! A generator in a session: it begins where its slot's last owner stopped, and asks before it enters new time.

use crate::{Error, Generator, Layout, Share, SnoGenerator, Start, Step, Trace, Window};

/// The memory that the sessions of a server share.
pub trait Shared {
    /// What a generator of this key begins with.
    fn begin(&self, key: u64) -> Beginning;
    /// The present era.
    fn era(&self) -> u64;
    /// Asks for the tick which ends at `tick_end` and holds `now`. `back` says that the generator can go back in time.
    fn grant(&self, now: i64, tick_end: i64, back: bool) -> Result<Grant, Error>;
}

/// What a generator begins with.
#[derive(Debug, Clone, Copy)]
pub struct Beginning {
    /// How.
    pub start: Start,
    /// Where the present is, by the sessions before.
    pub seen: i64,
    /// In which era this holds.
    pub era: u64,
    /// The time that it may use at first.
    pub window: Window,
}

/// The answer to a request for time.
#[derive(Debug, Clone, Copy)]
pub enum Grant {
    /// This time may be used, in this era.
    Window(Window, u64),
    /// None before this instant.
    After(i64),
}

/// A generator that can take over from another one.
pub trait Successor: Sized {
    /// What it makes.
    type Id;
    /// What tells it apart: its layout and share.
    type Origin;
    /// Whether it goes on in the past when the clock steps back.
    const GOES_BACK: bool;
    /// Begins as the ledger says.
    fn start(origin: &Self::Origin, start: Start, seen: i64) -> Self;
    /// See [`Generator::allow`].
    fn allow(&mut self, window: Window);
    /// See [`Generator::trace`].
    fn trace(&self) -> Trace;
    /// IDs made so far.
    fn issued(&self) -> u64;
}

/// A generator with its place in the ledger.
pub struct Session<G: Successor> {
    /// The generator.
    pub generator: G,
    /// What its traces go by.
    pub key: u64,
    origin: G::Origin,
    era: u64,
    issued_before: u64,
}

impl<G: Successor> Session<G> {
    /// Begins where the slot's last owner stopped.
    pub fn begin(shared: &impl Shared, key: u64, origin: G::Origin) -> Self {
        let Beginning { start, seen, era, window } = shared.begin(key);
        let mut generator = G::start(&origin, start, seen);
        generator.allow(window);
        Self { generator, key, origin, era, issued_before: 0 }
    }

    /// Asks the generator by `ask`, which also says at what instant, and the ledger where that is needed.
    pub fn next(
        &mut self,
        shared: &impl Shared,
        mut ask: impl FnMut(&mut G) -> (i64, Step<G::Id>),
    ) -> Result<Step<G::Id>, Error> {
        loop {
            let (now, step) = ask(&mut self.generator);
            let until = match step {
                Step::Outside { tick_end } => match shared.grant(now, tick_end, G::GOES_BACK)? {
                    Grant::Window(window, era) if era == self.era => {
                        self.generator.allow(window);
                        continue;
                    }
                    // The era is another one, or no window is known.
                    Grant::Window(..) => now,
                    Grant::After(until) => until,
                },
                Step::ClockBehind { until } => until,
                step => return Ok(step),
            };
            if shared.era() == self.era {
                return Ok(Step::ClockBehind { until });
            }
            let issued_before = self.issued();
            // Whatever it has used lies outside of the new era's time.
            let Beginning { start, seen, era, window } = shared.begin(self.key);
            self.generator = G::start(&self.origin, start, seen);
            self.generator.allow(window);
            (self.era, self.issued_before) = (era, issued_before);
        }
    }

    /// IDs made so far.
    pub fn issued(&self) -> u64 {
        self.issued_before + self.generator.issued()
    }

    /// What its successor needs, and in which era.
    pub fn trace(&self) -> (u64, Trace) {
        (self.era, self.generator.trace())
    }
}

/// What a generator of a layout is made of.
pub struct Origin {
    /// The layout.
    pub layout: Layout,
    /// The share.
    pub share: Share,
    /// Where a rolling sequence begins.
    pub position: u64,
}

impl Successor for Generator {
    type Id = u64;
    type Origin = Origin;
    const GOES_BACK: bool = false;

    fn start(origin: &Origin, start: Start, seen: i64) -> Self {
        Self::start(&origin.layout, &origin.share, start, seen, origin.position)
    }

    fn allow(&mut self, window: Window) {
        self.allow(window);
    }

    fn trace(&self) -> Trace {
        self.trace()
    }

    fn issued(&self) -> u64 {
        self.issued()
    }
}

impl Successor for SnoGenerator {
    type Id = crate::Sno;
    type Origin = Share;
    const GOES_BACK: bool = true;

    fn start(share: &Share, start: Start, seen: i64) -> Self {
        Self::start(*share, start, seen)
    }

    fn allow(&mut self, window: Window) {
        self.allow(window);
    }

    fn trace(&self) -> Trace {
        self.trace()
    }

    fn issued(&self) -> u64 {
        self.issued()
    }
}
