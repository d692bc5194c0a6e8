//! sno_next.

use flake_core::sno::metabyte;
use flake_core::{Sno, SnoSource};
use pgrx::prelude::*;

use super::datum::SnoDatum;
use crate::error::OrRaise;
use crate::postgres::entry_point::entry_point;
use crate::session::next_id;
use crate::session::stores::{SNOS, find};

entry_point!(sno_next(metabyte: i32) else sno_next_or_wait, |call| at_once(metabyte, None).map(to_result));

entry_point!(sno_next_in_partition(metabyte: i32, partition: i32) else sno_next_in_partition_or_wait, |call| {
    at_once(metabyte, Some(partition)).map(to_result)
});

/// Returns the next sno, if the partition has a generator that can make one now.
#[inline]
fn at_once(metabyte: i32, partition: Option<i32>) -> Option<Sno> {
    let metabyte = metabyte.try_into().ok()?;
    find(&SNOS, move |source| source.partition == partition, move |own| own.at_once(metabyte))
}

#[inline]
fn to_result(sno: Sno) -> pg_sys::Datum {
    #[allow(unsafe_code, reason = "an unguarded allocation")]
    // SAFETY: the entry points above hold nothing that has to be dropped.
    unsafe {
        SnoDatum(sno).to_result()
    }
}

#[pg_extern(sql = "")]
fn sno_next_or_wait(metabyte: i32) -> SnoDatum {
    next_or_wait(metabyte, None)
}

#[pg_extern(sql = "")]
fn sno_next_in_partition_or_wait(metabyte: i32, partition: i32) -> SnoDatum {
    next_or_wait(metabyte, Some(partition))
}

fn next_or_wait(given: i32, partition: Option<i32>) -> SnoDatum {
    let metabyte = metabyte(given.into()).or_raise();
    SnoDatum(next_id(&SNOS, SnoSource { partition }, metabyte).or_raise())
}
