//! The ends of the ranges that replace filters by the time of snos.
#![allow(unsafe_code, reason = "returns a value by reference")]

use flake_core::{ContiguousIds, Sno};
use pgrx::pg_sys;

use super::datum::SnoDatum;
use crate::postgres::call::Function;
use crate::postgres::entry_point::entry_point;
use crate::postgres::time_filter::TimeFunction;
use crate::postgres::timestamptz::Timestamptz;

unsafe extern "C-unwind" {
    fn sno_during_support(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
}

/// All ten-byte values are snos, so no value below or above a range must be kept out.
pub const TIME_FUNCTION: TimeFunction = TimeFunction {
    support: sno_during_support as Function,
    contiguous: |_| Some(ContiguousIds { lowest: i64::MIN, highest: i64::MAX, turns_negative: false }),
};

macro_rules! ends {
    ($($name:ident: $method:ident),+) => { $(
        // SAFETY: nothing here has to be dropped.
        entry_point!($name(at: Timestamptz), |call| call.or_null(Sno::$method(at.instant()).map(|sno| unsafe { SnoDatum(sno).to_result() })));
    )+ };
}

ends!(sno_plan_since: since, sno_plan_after: after, sno_plan_until: until, sno_plan_before: before);
