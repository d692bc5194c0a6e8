//! A session that makes IDs on such a server.

use flake_core::ledger::durable::page::record_mark;
use flake_core::ledger::host::Server;
use flake_core::ledger::time::begin::parts;
use flake_core::ledger::time::grant::{Grant, grant};
use flake_core::{Answer, Layout, Place, Resumable, built_in, lanes_of};

use super::{Alone, HOUR, NOON, Trouble};

/// A server that has been running for an hour.
pub fn server() -> Alone {
    let mut alone = Alone::new();
    alone.at(NOON - HOUR);
    record_mark(&mut alone).unwrap();
    alone.at(NOON);
    alone
}

pub fn session(alone: &mut Alone) -> Resumable<&'static Layout> {
    let layout = built_in("twitter").unwrap();
    let lanes = lanes_of(&layout, parts(alone).unwrap()).unwrap();
    let place = Place::find(alone, &layout, lanes, 0, 1).unwrap();
    Resumable::begin(alone, layout, &place).unwrap()
}

/// Makes an ID. Returns when its tick began.
pub fn make(alone: &mut Alone, own: &mut Resumable<&'static Layout>) -> Result<i64, Trouble> {
    match own.next(alone, |_, _, _| Ok(()), || 0)? {
        Answer::Issue(id) => Ok(own.generator.source.start_of(own.generator.source.unpack(id).unwrap().tick)),
        answer => panic!("{answer:?}"),
    }
}

pub fn granted(alone: &mut Alone, now: i64) -> Grant {
    let era = alone.shared().era();
    grant(alone, era, now).unwrap()
}
