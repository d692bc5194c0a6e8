//! The ends of the ranges that replace filters by time.
#![allow(unsafe_code, reason = "the call site keeps the layout")]

use flake_core::ContiguousIds;
use pgrx::prelude::*;

use crate::layouts::argument::with_layout;
use crate::layouts::known;
use crate::postgres::call::{Function, Text};
use crate::postgres::entry_point::entry_point;
use crate::postgres::time_filter::TimeFunction;
use crate::postgres::timestamptz::{Timestamptz, of_date, of_timestamp};

unsafe extern "C-unwind" {
    fn flake_during_support(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
}

/// flake_timestamp has the same support function as flake_during, because libraries of sessions from before an upgrade have it too.
pub const TIME_FUNCTION: TimeFunction = TimeFunction { support: flake_during_support as Function, contiguous };

fn contiguous(layout: Option<Text<'_>>) -> Option<ContiguousIds> {
    known(layout?.bytes())?.contiguous_ids()
}

macro_rules! ends {
    ($($name:ident: $method:ident),+) => { $(
        entry_point!($name(at: Timestamptz, layout: Text<'_>), |call| {
            // SAFETY: `layout` is argument 1, and the function caches nothing else.
            call.or_null(unsafe { with_layout(call, 1, layout, |layout| layout.$method(at.instant())) })
        });
    )+ };
}

ends!(flake_plan_since: since, flake_plan_after: after, flake_plan_until: until, flake_plan_before: before);

entry_point!(flake_plan_instant(at: i64), |call| pg_sys::Datum::from(of_timestamp(at)));
entry_point!(flake_plan_instant_of_date(date: i32), |call| pg_sys::Datum::from(of_date(date)));
