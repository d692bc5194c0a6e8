//! Making snos: this session's generators, one for the automatic partitions and one for each of the caller's that is used.

use std::borrow::Cow;
use std::cell::RefCell;

use flake_core::session::Session;
use flake_core::sno::{automatic_share, key, metabyte, partition_share, unit_to_generate_in};
use flake_core::{Error, Share, Sno, SnoGenerator, Step, Trace};
use pgrx::prelude::*;

use super::SnoDatum;
use crate::postgres::call::entry_point;
use crate::session::delays::{Asked, Delays, wait_for_id};
use crate::error::OrRaise;
use crate::ledger::{self, Own};
use crate::session::tick_clock::TickClock;
use crate::clock;
use crate::postgres::slot as place;
use crate::postgres::recovery;

/// A generator of this session, and what has happened to it.
pub struct SnoSession {
    /// The caller's partition, or the automatic ones.
    partition: Option<i32>,
    pub share: Share,
    pub session: Session<SnoGenerator>,
    pub delays: Delays,
    clock: TickClock,
}

thread_local! {
    static GENERATORS: RefCell<Vec<SnoSession>> = const { RefCell::new(Vec::new()) };
}

impl SnoSession {
    fn new(partition: Option<i32>) -> Result<Self, Error> {
        recovery::refuse_or_raise(c"sno_next()");
        unit_to_generate_in(clock::now())?;
        ledger::join()?;
        let (node, slot) = (ledger::node()?, place::slot()?);
        let share = match partition {
            Some(partition) => partition_share(partition.into(), node, slot)?,
            None => automatic_share(node, slot)?,
        };
        let session = Session::begin(&Own, key(partition), share);
        Ok(Self { partition, share, session, delays: Delays::default(), clock: TickClock::default() })
    }

    fn ask(&mut self, metabyte: u8) -> Result<Step<Sno>, Error> {
        let step = self.session.next(&Own, |generator| {
            let now = clock::now();
            (now, generator.next(now, metabyte))
        });
        self.delays.report(self.session.issued());
        step
    }
}

/// Acts on this session's generator of a partition, which is made when there is none.
fn own<R>(partition: Option<i32>, act: impl FnOnce(&mut SnoSession) -> R) -> R {
    GENERATORS.with_borrow_mut(|generators| {
        let known = generators.iter().position(|own| own.partition == partition);
        let place = known.unwrap_or_else(|| {
            generators.push(SnoSession::new(partition).or_raise());
            generators.len() - 1
        });
        act(&mut generators[place])
    })
}

/// Does something with each of this session's generators.
pub fn each<R>(act: impl FnMut(&SnoSession) -> R) -> Vec<R> {
    GENERATORS.with_borrow(|generators| generators.iter().map(act).collect())
}

/// What each of them leaves, with key and era; none when the session ends while one is in use.
pub fn traces() -> Option<Vec<(u64, u64, Trace)>> {
    GENERATORS.with(|generators| {
        let mut generators = generators.try_borrow_mut().ok()?;
        Some(generators.iter_mut().map(|own| own.delays.leave(&own.session)).collect())
    })
}

/// A request for an ID.
struct Request {
    metabyte: u8,
    partition: Option<i32>,
}

impl Asked for Request {
    type Id = Sno;

    fn ask(&self) -> Result<Step<Sno>, Error> {
        own(self.partition, |own| own.ask(self.metabyte))
    }

    fn delays(&self, act: impl FnOnce(&mut Delays, u64)) {
        own(self.partition, |own| act(&mut own.delays, own.session.issued()));
    }

    fn layout(&self) -> Cow<'static, str> {
        "sno".into()
    }

    fn exhausted(&self) -> Error {
        flake_core::sno::exhausted()
    }
}

/// The next sno of a generator that there is, if it has one.
#[inline]
fn at_once(metabyte: i32, partition: Option<i32>) -> Option<Sno> {
    let metabyte = metabyte.try_into().ok()?;
    GENERATORS.with(|generators| {
        let mut generators = generators.try_borrow_mut().ok()?;
        let own = generators.iter_mut().find(|own| own.partition == partition)?;
        let generator = &mut own.session.generator;
        let now = own.clock.now(|now| generator.left_of_unit(now));
        match generator.next(now, metabyte) {
            Step::Issue(sno) => Some(sno),
            _ => None,
        }
    })
}

entry_point!(pg_finfo_sno_next, sno_next, |call| {
    at_once(call.integer(0), None).map_or_else(|| call.otherwise(sno_next_or_wait_wrapper), |sno| call.sno(&sno))
});

entry_point!(pg_finfo_sno_next_in, sno_next_in, |call| {
    let sno = at_once(call.integer(0), Some(call.integer(1)));
    sno.map_or_else(|| call.otherwise(sno_next_in_or_wait_wrapper), |sno| call.sno(&sno))
});

#[pg_extern(sql = "")]
fn sno_next_or_wait(metabyte: i32) -> SnoDatum {
    next_or_wait(metabyte, None)
}

#[pg_extern(sql = "")]
fn sno_next_in_or_wait(metabyte: i32, partition: i32) -> SnoDatum {
    next_or_wait(metabyte, Some(partition))
}

fn next_or_wait(metabyte_given: i32, partition: Option<i32>) -> SnoDatum {
    let request = Request { metabyte: metabyte(metabyte_given.into()).or_raise(), partition };
    SnoDatum(wait_for_id(&request).or_raise())
}
