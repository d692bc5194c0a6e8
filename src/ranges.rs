//! The time inside an ID, and the IDs inside a time.
//!
//! A `timestamptz` is taken and given as the 64-bit number it is, so that nothing is rounded.

use pgrx::prelude::*;

use crate::clock::{instant, timestamptz};
use crate::error::OrRaise;
use crate::layouts::by_name;

#[pg_extern(sql = "")]
fn flake_timestamp(id: i64, layout: &[u8]) -> i64 {
    let layout = by_name(layout);
    timestamptz(layout.start_of(layout.tick_of(id as u64).or_raise()))
}

#[pg_extern(sql = "")]
fn flake_min(at: i64, layout: &[u8]) -> i64 {
    by_name(layout).min_at(instant(at)).or_raise() as i64
}

#[pg_extern(sql = "")]
fn flake_max(at: i64, layout: &[u8]) -> i64 {
    by_name(layout).max_at(instant(at)).or_raise() as i64
}
