//! Errors of the core as errors of PostgreSQL: SQLSTATE, DETAIL and HINT in one table.

use std::ffi::CStr;
use std::time::Duration;

use flake_core::{Error, TextFault};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode as Code, direct_function_call, function_name, pg_sys};

use crate::clock;

const SEE_FIELDS: &str = "The view flake_layouts shows the fields of every layout.";

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

/// Ends the statement with this error, or leaves it with the caller of an input function where that asks for it.
#[cfg(feature = "pg15")]
pub fn soften(error: Error, _call: pg_sys::FunctionCallInfo) {
    raise(error)
}

/// Ends the statement with this error, or leaves it with the caller of an input function where that asks for it.
#[cfg(not(feature = "pg15"))]
#[allow(unsafe_code, reason = "soft errors are for C: pgrx has nothing for them")]
pub fn soften(error: Error, call: pg_sys::FunctionCallInfo) {
    use std::ffi::CString;
    unsafe extern "C-unwind" {
        fn errcode(sqlstate: i32) -> i32;
    }
    // SAFETY: the call is that of the running function; a node that is no ErrorSaveContext asks for a hard error. What is
    // passed to the errmsg functions is copied, and has no % in its place as a format.
    unsafe {
        let context = (*call).context;
        if context.is_null() || (*context).type_ != pg_sys::NodeTag::T_ErrorSaveContext {
            raise(error);
        }
        if !pg_sys::errsave_start(context, std::ptr::null()) {
            return;
        }
        let (code, detail, _) = explain(&error);
        let text = |text: String| CString::new(text).unwrap_or_default();
        errcode(code as i32);
        pg_sys::errmsg_internal(c"%s".as_ptr(), text(error.to_string()).as_ptr());
        pg_sys::errdetail_internal(c"%s".as_ptr(), text(detail).as_ptr());
        pg_sys::errsave_finish(context, c"error.rs".as_ptr(), line!() as i32, c"soften".as_ptr());
    }
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
        Error::UnknownLayout { nearest, known, .. } => {
            let guess = nearest.as_ref().map(|name| format!("Perhaps you mean \"{name}\". ")).unwrap_or_default();
            (
                Code::ERRCODE_INVALID_PARAMETER_VALUE,
                "No layout has this name; names are case-sensitive.".to_owned(),
                format!("{guess}Known layouts: {}.", known.join(", ")),
            )
        }
        Error::ImpossibleId { width, above, field, .. } => {
            let detail = match field {
                _ if *above => format!("IDs of this layout are from 0 to {}.", u64::MAX >> (64 - width)),
                Some((name, found, value)) => format!("Its field \"{name}\" holds {found} and can only hold {value}."),
                None => "Its timestamp is later than an instant can be.".to_owned(),
            };
            (
                Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                detail,
                "Check that the ID was made with this layout; the view flake_layouts shows them all.".to_owned(),
            )
        }
        Error::PartOutOfRange { max, .. } => {
            (Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, format!("The valid range is 0 to {max}."), SEE_FIELDS.to_owned())
        }
        Error::UnknownField { known, .. } => {
            (Code::ERRCODE_INVALID_PARAMETER_VALUE, format!("Its fields are {known}."), SEE_FIELDS.to_owned())
        }
        Error::OtherTick { number, tick, .. } => (
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("The instant's tick is {tick}, the fields say {number}."),
            "Leave the timestamp out of the fields, or give the instant that belongs to it.".to_owned(),
        ),
        Error::BadNumber { numeric, .. } => (
            if *numeric { Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE } else { Code::ERRCODE_INVALID_PARAMETER_VALUE },
            "Fields hold whole numbers from 0 on.".to_owned(),
            SEE_FIELDS.to_owned(),
        ),
        Error::FieldsNotAnObject => (
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            "Its keys are the names of fields, its values their numbers.".to_owned(),
            "An example: {\"worker\": 3, \"sequence\": 7}. Fields that are not named are 0.".to_owned(),
        ),
        Error::BadCount { .. } => (
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("The valid range is 0 to {}.", i32::MAX),
            "Give the number of IDs that are wanted; 0 gives none.".to_owned(),
        ),
        Error::NoTag { .. } => (
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            "None of its fields has the role \"tag\".".to_owned(),
            "Call flake_next without a tag, or create a layout with a tag field: flake_create_layout.".to_owned(),
        ),
        Error::TagOutOfRange { max, .. } => {
            (Code::ERRCODE_INVALID_PARAMETER_VALUE, format!("The valid range is 0 to {max}."), SEE_FIELDS.to_owned())
        }
        Error::ReadOnly { .. } => (
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            "How its IDs are made is not known well enough, or is up to another generator.".to_owned(),
            "Choose one with: SELECT name FROM flake_layouts WHERE generates.".to_owned(),
        ),
        Error::MalformedText { fault, .. } => (
            Code::ERRCODE_INVALID_TEXT_REPRESENTATION,
            describe(fault),
            "The view flake_layouts shows the text form of every layout.".to_owned(),
        ),
        Error::NameTaken { .. } => (
            Code::ERRCODE_DUPLICATE_OBJECT,
            "A layout or a foreign server has this name, and they share their names.".to_owned(),
            "Choose another name, or drop that one first: flake_drop_layout.".to_owned(),
        ),
        Error::BuiltIn { .. } => (
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            "Only layouts that flake_create_layout made can be dropped.".to_owned(),
            "The view flake_layouts says where every layout comes from.".to_owned(),
        ),
        Error::Altered { .. } => (
            Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "IDs live by their layout's definition, which cannot be changed.".to_owned(),
            "Undo the change, or make a layout of another name with flake_create_layout.".to_owned(),
        ),
        Error::SnoPart { part, max, made, .. } => (
            if *made { Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE } else { Code::ERRCODE_INVALID_PARAMETER_VALUE },
            format!("The valid range is 0 to {max}."),
            match *part {
                "partition" => "Partitions from 32768 on are assigned automatically; those below are the caller's.",
                "metabyte" => "The metabyte is one byte, for the caller's own use.",
                _ => "A sno has 16 bits for its sequence.",
            }
            .to_owned(),
        ),
        Error::SnoText { fault, .. } => (
            Code::ERRCODE_INVALID_TEXT_REPRESENTATION,
            describe(fault),
            "A sno is written as 16 characters, of 2 to 9 and a to x.".to_owned(),
        ),
        Error::SnoBytes { received, .. } => (
            if *received { Code::ERRCODE_INVALID_BINARY_REPRESENTATION } else { Code::ERRCODE_INVALID_PARAMETER_VALUE },
            "The bytes of a sno are its time, metabyte, partition and sequence, the most significant first.".to_owned(),
            "Give all ten bytes, or the 16 characters as text.".to_owned(),
        ),
        Error::SnoUuid => (
            Code::ERRCODE_INVALID_TEXT_REPRESENTATION,
            "A sno is kept in a uuid as its 16 characters, of 2 to 9 and a to x.".to_owned(),
            "Only a uuid that was cast from a sno can be cast to one.".to_owned(),
        ),
        Error::NotALayout => (
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            "A layout is a foreign server of flake_layout whose only option is its definition.".to_owned(),
            "Make it with flake_create_layout.".to_owned(),
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
        Error::EmptyShare { workers, sequences, sharers, .. } => (
            Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "This node has {workers} worker{} with {sequences} sequence numbers each; {sharers} server processes \
                 (max_connections and other workers) have to divide those of one.",
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
        Error::Mark { reason: None, .. } => (
            Code::ERRCODE_DATA_CORRUPTED,
            "Neither of its two records is whole, or they are of a newer version.".to_owned(),
            "Restore the file. If the clock has not been set back since IDs were made last, it can be deleted instead."
                .to_owned(),
        ),
        Error::Mark { kind, .. } => (
            match kind {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Code::ERRCODE_DISK_FULL,
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                    Code::ERRCODE_INSUFFICIENT_PRIVILEGE
                }
                _ => Code::ERRCODE_IO_ERROR,
            },
            "No ID may carry a time that this file, in the data directory, does not allow.".to_owned(),
            "Make the data directory writable and see that its disk is not full.".to_owned(),
        ),
        Error::SlotOutOfRange { .. } => (
            Code::ERRCODE_INTERNAL_ERROR,
            "PostgreSQL numbers its server processes otherwise than flake expects.".to_owned(),
            "Please report this.".to_owned(),
        ),
        Error::Definition { .. } => (
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            "A definition is an object with epoch, tick, fields, sequence and text, or with like and what differs."
                .to_owned(),
            "An example: {\"like\": \"twitter\", \"epoch\": \"2024-01-01T00:00:00Z\"}.".to_owned(),
        ),
    }
}

fn describe(fault: &TextFault) -> String {
    match fault {
        TextFault::Length { found, expected } => format!("It has {found} characters and needs {expected}."),
        TextFault::Character { character, position } => {
            format!("Character {position}, \"{}\", is no digit of this text form.", character.escape_default())
        }
        TextFault::TooLarge { position } => format!("The number is larger than 64 bits at character {position}."),
        TextFault::LeadingZero => "Character 1 is a leading zero.".to_owned(),
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
