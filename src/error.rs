//! Errors of the core as errors of PostgreSQL: SQLSTATE, DETAIL and HINT in one table.

use std::ffi::CStr;
use std::time::Duration;

use flake_core::{BUILTIN, Error};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode as Code, direct_function_call, function_name, pg_sys};

use crate::clock;

/// Ends the statement with this error.
#[cold]
pub fn raise(error: Error) -> ! {
    let (code, detail, hint) = explain(&error);
    ErrorReport::new(code, error.to_string(), function_name!())
        .set_detail(detail)
        .set_hint(hint)
        .report(PgLogLevel::ERROR);
    unreachable!("an ERROR does not return")
}

/// Results whose error ends the statement.
pub trait OrRaise {
    /// What there is without an error.
    type Value;
    /// The value, or the error as PostgreSQL's.
    fn or_raise(self) -> Self::Value;
}

impl<T> OrRaise for Result<T, Error> {
    type Value = T;

    #[inline]
    fn or_raise(self) -> T {
        self.unwrap_or_else(|error| raise(error))
    }
}

fn explain(error: &Error) -> (Code, String, String) {
    match error {
        Error::UnknownLayout { nearest, .. } => {
            let known = BUILTIN.iter().map(|layout| layout.name()).collect::<Vec<_>>().join(", ");
            let guess = nearest.map(|name| format!("Perhaps you mean \"{name}\". ")).unwrap_or_default();
            (
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                "No layout has this name; names are case-sensitive.".to_owned(),
                format!("{guess}Known layouts: {known}."),
            )
        }
        Error::ImpossibleId { width, above, field, .. } => {
            let detail = match field {
                _ if *above => format!("IDs of this layout are from 0 to {}.", u64::MAX >> (64 - width)),
                Some((name, found, value)) => format!("Its field \"{name}\" holds {found} and can only hold {value}."),
                None => format!("IDs of this layout have {width} bits."),
            };
            (
                Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                detail,
                "Check that the ID was made with this layout; the view flake_layouts shows them all.".to_owned(),
            )
        }
        Error::PartOutOfRange { max, .. } => (
            Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            format!("The valid range is 0 to {max}."),
            "The view flake_layouts shows the fields of every layout.".to_owned(),
        ),
        Error::InstantOutOfRange { at, first, end, .. } => (
            Code::ERRCODE_DATETIME_FIELD_OVERFLOW,
            format!("{} is not within {} and {}.", text(*at), text(*first), text(*end - 1)),
            "The view flake_layouts shows the epoch and the last instant of every layout.".to_owned(),
        ),
        Error::Exhausted { end, .. } => (
            Code::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
            format!("Its last tick ended at {}.", text(*end)),
            "Check the server's clock, or use a layout with a later epoch or more timestamp bits.".to_owned(),
        ),
        Error::NotTimeOrdered { .. } => (
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            "Its bits are in another order than time, so an instant has no smallest and no largest ID.".to_owned(),
            "Use flake_timestamp(id, layout), which can be indexed.".to_owned(),
        ),
        Error::NodeOutOfRange { id, count } => (
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("flake.node_id is {id}, flake.node_count is {count}; valid are 0 to {}.", count - 1),
            "Set flake.node_id and flake.node_count in postgresql.conf and reload it.".to_owned(),
        ),
        Error::TooManyNodes { workers, nodes, .. } => (
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("The layout has {workers} workers, flake.node_count is {nodes}."),
            "Lower flake.node_count and restart the server, or use a layout with more worker bits.".to_owned(),
        ),
        Error::EmptyShare { workers, sequences, slots, .. } => (
            Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "This node has {workers} worker{} with {sequences} sequence numbers each; {slots} server processes \
                 (max_connections and other workers) have to divide them.",
                if *workers == 1 { "" } else { "s" }
            ),
            "Lower flake.node_count or max_connections and restart the server, or use a layout with more worker or \
             sequence bits."
                .to_owned(),
        ),
        Error::ClockBehind { now, until, patience, .. } => {
            let (behind, patience) = (micros(*until - *now), micros(*patience));
            (
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("The clock is {behind:?} behind; flake.max_clock_wait allows to wait for {patience:?}."),
                format!(
                    "IDs can be made again when the clock has reached {}; check its synchronization.",
                    text(*until)
                ),
            )
        }
        Error::SlotOutOfRange { .. } => (
            Code::ERRCODE_INTERNAL_ERROR,
            "PostgreSQL numbers its server processes otherwise than flake expects.".to_owned(),
            "Please report this.".to_owned(),
        ),
        Error::Definition { .. } => (
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            "A layout is defined by its epoch, tick, fields and sequence.".to_owned(),
            "The view flake_layouts shows the fields of every layout.".to_owned(),
        ),
    }
}

fn micros(microseconds: i64) -> Duration {
    Duration::from_micros(microseconds.unsigned_abs())
}

/// An instant as this session shows a timestamptz.
fn text(instant: i64) -> String {
    let timestamptz = pg_sys::Datum::from(clock::timestamptz(instant));
    #[allow(unsafe_code, reason = "calling an SQL function by its C name")]
    // SAFETY: timestamptz_out takes a timestamptz, which is passed by value, and returns a C string.
    let shown = unsafe { direct_function_call::<&CStr>(pg_sys::timestamptz_out, &[Some(timestamptz)]) };
    shown.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}
