//! Making IDs: this session's generators, and what happens when one cannot answer at once.
//!
//! At best an ID takes a comparison of the layout's name with those of the session's generators, a look at the time, and
//! the generator.

use std::borrow::Cow;
use std::cell::RefCell;

use flake_core::session::{Origin, Session};
use flake_core::{Error, Generator, Layout, Share, Step, Trace};
use pgrx::prelude::*;

use crate::postgres::call::entry_point;
use crate::session::delays::{Asked, Delays, wait_for_id};
use crate::error::OrRaise;
use crate::layouts::{by_name, is_same};
use crate::ledger::{self, Own};
use crate::session::tick_clock::TickClock;
use crate::clock;
use crate::layouts::custom;
use crate::postgres::slot as place;
use crate::postgres::recovery;

/// A generator of this session, and what has happened to it.
pub struct SessionGenerator {
    pub layout: &'static Layout,
    /// Since how many changes of custom layouts the layout's name stands for it.
    since: u64,
    pub share: Share,
    pub session: Session<Generator>,
    pub delays: Delays,
    clock: TickClock,
}

/// The generators of this session.
struct Generators(Vec<SessionGenerator>);

thread_local! {
    static GENERATORS: RefCell<Generators> = const { RefCell::new(Generators(Vec::new())) };
}

impl Generators {
    /// The generator that this name is known to stand for.
    #[inline]
    fn known(&mut self, layout: &[u8]) -> Option<&mut SessionGenerator> {
        let changes = custom::changes();
        self.0.iter_mut().find(|own| is_same(own.layout.name().as_bytes(), layout) && own.since == changes)
    }

    /// The generator of the layout that has this name now, which is made when there is none.
    #[cold]
    fn look_up(&mut self, layout: &[u8]) -> &mut SessionGenerator {
        let changes = custom::changes();
        let layout = by_name(layout);
        // Layouts of the same bits under different names share a generator, which goes by the name used last.
        let known = self.0.iter().position(|own| own.layout.same_bits(layout));
        let place = known.unwrap_or_else(|| {
            self.0.push(SessionGenerator::new(layout).or_raise());
            self.0.len() - 1
        });
        let own = &mut self.0[place];
        (own.layout, own.since) = (layout, changes);
        own
    }
}

impl SessionGenerator {
    fn new(layout: &'static Layout) -> Result<Self, Error> {
        if !layout.generates() {
            return Err(Error::ReadOnly { layout: layout.name().to_owned().into() });
        }
        recovery::refuse_or_raise(c"flake_next()");
        layout.tick_to_generate_in(clock::now())?;
        ledger::join()?;
        let share = Share::new(layout, ledger::node()?, place::slot()?)?;
        // A sequence that rolls begins anywhere, so that short sessions do not all use the same numbers.
        let origin = Origin { layout: layout.clone(), share, position: rand::random() };
        let session = Session::begin(&Own, layout.key(), origin);
        let (delays, clock) = (Delays::default(), TickClock::default());
        Ok(Self { layout, since: 0, share, session, delays, clock })
    }

    #[inline]
    fn next(&mut self) -> Step {
        let generator = &mut self.session.generator;
        let now = self.clock.now(|now| generator.left_of_tick(now));
        generator.next(now, rand::random)
    }

    /// Makes IDs for as long as the tick and the share allow, by one look at the clock; returns how many.
    pub fn fill(&mut self, ids: &mut [u64]) -> usize {
        self.session.generator.fill(clock::now(), ids, rand::random)
    }

    /// As [`Self::next`], and asks the ledger where that is needed.
    #[cold]
    fn ask(&mut self) -> Result<Step, Error> {
        let step = self.session.next(&Own, |generator| {
            let now = clock::now();
            (now, generator.next(now, rand::random))
        });
        self.delays.report(self.session.issued());
        step
    }
}

/// Acts on this session's generator of a layout, which is made when there is none.
pub fn own<R>(layout: &[u8], act: impl FnOnce(&mut SessionGenerator) -> R) -> R {
    GENERATORS.with_borrow_mut(|generators| act(generators.look_up(layout)))
}

/// Does something with each of this session's generators.
pub fn each<R>(act: impl FnMut(&SessionGenerator) -> R) -> Vec<R> {
    GENERATORS.with_borrow(|generators| generators.0.iter().map(act).collect())
}

/// What each of them leaves, with key and era; none when the session ends while one is in use.
pub fn traces() -> Option<Vec<(u64, u64, Trace)>> {
    GENERATORS.with(|generators| {
        let mut generators = generators.try_borrow_mut().ok()?;
        Some(generators.0.iter_mut().map(|own| own.delays.leave(&own.session)).collect())
    })
}

/// The generator of the layout of this name.
pub struct Named<'a>(pub &'a [u8]);

impl Asked for Named<'_> {
    type Id = u64;

    fn ask(&self) -> Result<Step, Error> {
        own(self.0, SessionGenerator::ask)
    }

    fn delays(&self, act: impl FnOnce(&mut Delays, u64)) {
        own(self.0, |own| act(&mut own.delays, own.session.issued()));
    }

    fn layout(&self) -> Cow<'static, str> {
        by_name(self.0).name().to_owned().into()
    }

    fn exhausted(&self) -> Error {
        by_name(self.0).exhausted()
    }
}

/// The next ID of a generator that is known by this name, if it has one; with a tag where one is given.
#[inline]
fn at_once(layout: &[u8], tag: Option<i32>) -> Option<u64> {
    GENERATORS.with(|generators| {
        let mut generators = generators.try_borrow_mut().ok()?;
        let own = generators.known(layout)?;
        let tag = tag.map_or(Ok(0), |tag| own.layout.tag_bits(tag.into())).ok()?;
        match own.next() {
            Step::Issue(id) => Some(id | tag),
            _ => None,
        }
    })
}

entry_point!(pg_finfo_flake_next, flake_next, |call| {
    let id = call.text(0).and_then(|layout| at_once(layout, None));
    id.map_or_else(|| call.otherwise(flake_next_or_wait_wrapper), pg_sys::Datum::from)
});

entry_point!(pg_finfo_flake_next_tagged, flake_next_tagged, |call| {
    let id = call.text(0).and_then(|layout| at_once(layout, Some(call.integer(1))));
    id.map_or_else(|| call.otherwise(flake_next_tagged_or_wait_wrapper), pg_sys::Datum::from)
});

#[pg_extern(sql = "")]
fn flake_next_or_wait(layout: &[u8]) -> i64 {
    wait_for_id(&Named(layout)).or_raise() as i64
}

#[pg_extern(sql = "")]
fn flake_next_tagged_or_wait(layout: &[u8], tag: i32) -> i64 {
    let tag = by_name(layout).tag_bits(tag.into()).or_raise();
    flake_next_or_wait(layout) | tag as i64
}
