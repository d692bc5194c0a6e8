//! sno_next.
#![allow(unsafe_code, reason = "enters the guard, and allocates without it")]

use flake_core::sno::metabyte;
use flake_core::{Sno, SnoSource};
use pgrx::pg_sys::Datum;

use super::datum::SnoDatum;
use crate::error::OrRaise;
use crate::postgres::entry_point::entry_point;
use crate::postgres::guard::guarded;
use crate::session::next_id;
use crate::session::stores::{SNOS, find};

entry_point!(sno_next(metabyte: i32), |call| next(metabyte, None));
entry_point!(sno_next_in_partition(metabyte: i32, partition: i32), |call| next(metabyte, Some(partition)));

#[inline]
fn next(metabyte: i32, partition: Option<i32>) -> Datum {
    // SAFETY: nothing is borrowed that an error could leave borrowed, and nothing has to be dropped.
    unsafe {
        let sno = at_once(metabyte, partition).unwrap_or_else(|| guarded(|| next_or_wait(metabyte, partition)));
        SnoDatum(sno).to_result()
    }
}

/// Returns the next sno, if the partition has a generator that can make one now.
#[inline]
fn at_once(metabyte: i32, partition: Option<i32>) -> Option<Sno> {
    let metabyte = metabyte.try_into().ok()?;
    find(&SNOS, move |source| source.partition == partition, move |own| own.at_once(metabyte))
}

fn next_or_wait(given: i32, partition: Option<i32>) -> Sno {
    let metabyte = metabyte(given.into()).or_raise();
    next_id(&SNOS, SnoSource { partition }, metabyte).or_raise()
}
