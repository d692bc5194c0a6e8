//! Making snos: this session's generators, one for the automatic partitions and one for each of the caller's that is used.

use std::borrow::Cow;
use std::cell::RefCell;

use flake_core::sno::{automatic_share, metabyte, partition_share};
use flake_core::{Error, Share, Sno, SnoGenerator, Step};
use pgrx::prelude::*;

use super::SnoDatum;
use crate::delays::{Asked, Delays, wait_for_id};
use crate::error::OrRaise;
use crate::generate::refuse_in_recovery;
use crate::{clock, place};

/// A generator of this session, and what has happened to it.
pub struct SnoSession {
    /// The caller's partition, or the automatic ones.
    partition: Option<i32>,
    pub share: Share,
    pub generator: SnoGenerator,
    pub delays: Delays,
}

thread_local! {
    static GENERATORS: RefCell<Vec<SnoSession>> = const { RefCell::new(Vec::new()) };
}

impl SnoSession {
    fn new(partition: Option<i32>) -> Result<Self, Error> {
        refuse_in_recovery(c"sno_next()");
        let (node, slot) = (place::node()?, place::slot()?);
        let share = match partition {
            Some(partition) => partition_share(partition.into(), node, slot)?,
            None => automatic_share(node, slot)?,
        };
        let generator = SnoGenerator::above(share, clock::now())?;
        Ok(Self { partition, share, generator, delays: Delays::default() })
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

/// A request for an ID.
struct Request {
    metabyte: u8,
    partition: Option<i32>,
}

impl Asked for Request {
    type Id = Sno;

    fn next(&self) -> Step<Sno> {
        own(self.partition, |own| own.generator.next(clock::now(), self.metabyte))
    }

    fn delays(&self, act: impl FnOnce(&mut Delays, u64)) {
        own(self.partition, |own| act(&mut own.delays, own.generator.issued()));
    }

    fn layout(&self) -> Cow<'static, str> {
        "sno".into()
    }

    fn exhausted(&self) -> Error {
        flake_core::sno::exhausted()
    }
}

fn next(metabyte_given: i32, partition: Option<i32>) -> SnoDatum {
    let request = Request { metabyte: metabyte(metabyte_given.into()).or_raise(), partition };
    SnoDatum(match request.next() {
        Step::Issue(sno) => sno,
        step => wait_for_id(&request, step).or_raise(),
    })
}

#[pg_extern(sql = "")]
fn sno_next(metabyte: i32) -> SnoDatum {
    next(metabyte, None)
}

#[pg_extern(sql = "")]
fn sno_next_in(metabyte: i32, partition: i32) -> SnoDatum {
    next(metabyte, Some(partition))
}
