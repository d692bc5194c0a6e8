//! The SQLSTATE, DETAIL and HINT of an error, and the ones that belong to the core's errors.

use flake_core::Error as CoreError;
use flake_core::horizon::host::Refusal;
use flake_core::ledger::block::Unreadable::{Damaged, Newer};
use flake_core::ledger::host::Fault;
use pgrx::PgSqlErrorCode::{self as State, *};

use crate::postgres::timestamptz::Timestamptz;

/// The parts of an error besides its message.
pub struct Row {
    pub sqlstate: State,
    pub detail: String,
    pub hint: Option<String>,
}

pub const SEE_FIELDS: &str = "The view flake_layouts shows the fields of every layout.";

#[rustfmt::skip]
impl Row {
    /// An empty hint means that the error has none.
    pub fn new(sqlstate: State, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { sqlstate, detail: detail.into(), hint: Some(hint.into()).filter(|hint| !hint.is_empty()) }
    }

    pub fn of_core(error: &CoreError) -> Self {
        use CoreError::*;
        match error {
            UnknownLayout { nearest, known, .. } => Row::new(ERRCODE_INVALID_PARAMETER_VALUE,
                "Names of layouts are case-sensitive.",
                known_layouts(nearest.as_deref(), known)),
            Definition { .. } => Row::new(ERRCODE_INVALID_PARAMETER_VALUE,
                "A definition is an object with epoch, tick, fields, sequence and text, or with like and the keys that differ.",
                "For example: {\"like\": \"twitter\", \"epoch\": \"2024-01-01T00:00:00Z\"}."),
            ImpossibleId { too_wide, width, field, .. } => Row::new(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                match field {
                    _ if *too_wide => format!("IDs of this layout are from 0 to {}.", u64::MAX >> (64 - width)),
                    Some((name, found, must_be)) => format!("Its field \"{name}\" is {found}, but must be {must_be}."),
                    None => "Its timestamp is later than any instant.".to_owned(),
                },
                "Check that the ID was made with this layout."),
            MalformedText { fault, .. } => Row::new(ERRCODE_INVALID_TEXT_REPRESENTATION,
                sentence(fault),
                "The view flake_layouts shows the text form of every layout."),
            UnknownField { known, .. } => Row::new(ERRCODE_INVALID_PARAMETER_VALUE,
                format!("Its fields are {known}."),
                SEE_FIELDS),
            PartOutOfRange { max, .. } => Row::new(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("The valid range is 0 to {max}."),
                SEE_FIELDS),
            OtherTick { tick, .. } => Row::new(ERRCODE_INVALID_PARAMETER_VALUE,
                format!("The tick of the given time is {tick}."),
                "Omit the timestamp from the fields, or give the time that it stands for."),
            InstantOutOfRange { at, first, end, .. } => Row::new(ERRCODE_DATETIME_FIELD_OVERFLOW,
                format!("{} is not between {} and {}.", time(*at), time(*first), time(*end - 1)),
                "The view flake_layouts shows the epoch and the last tick of every layout."),
            NotTimeOrdered { .. } => Row::new(ERRCODE_INVALID_PARAMETER_VALUE,
                "The order of its bits is not the order of time, so the IDs of a span of time are not a range.",
                "Use flake_timestamp(id, layout) instead, which can be indexed."),
            BeforeEpoch { now, epoch, .. } => Row::new(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("The clock says {}, and the epoch is {}.", time(*now), time(*epoch)),
                "Check the server's clock; a server that has just started may not have synchronized it yet."),
            Exhausted { end, .. } => Row::new(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!("Its last tick ended at {}.", time(*end)),
                "Check the server's clock, or use a layout with a later epoch or more timestamp bits."),
            NoTag { .. } => Row::new(ERRCODE_INVALID_PARAMETER_VALUE,
                "None of its fields has the role \"tag\".",
                "Call flake_next without a tag, or create a layout with a tag field with flake_create_layout."),
            TagOutOfRange { max, .. } => Row::new(ERRCODE_INVALID_PARAMETER_VALUE,
                format!("The valid range is 0 to {max}."),
                SEE_FIELDS),
            NodeOutOfRange { id, count } => Row::new(ERRCODE_INVALID_PARAMETER_VALUE,
                format!("flake.node_id is {id}, but flake.node_count is {count}; the valid range is 0 to {}.", count - 1),
                "Correct flake.node_id and flake.node_count in the server's configuration, and reload it. A setting of its command line \
                 needs a restart."),
            TooManyNodes { workers, nodes, .. } => Row::new(ERRCODE_INVALID_PARAMETER_VALUE,
                format!("The layout has {}, but flake.node_count is {nodes}.", counted(*workers, "worker")),
                "Lower flake.node_count and restart the server, or use a layout with more worker bits."),
            TooFewIds { workers, sequences, parts, .. } => Row::new(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("In each tick, this node has {} with {} each, which cannot be divided into {parts} parts.",
                    counted(*workers, "worker"), counted(*sequences, "sequence number")),
            "Lower flake.node_count and restart the server, or use a layout with more worker or sequence bits."),
            SlotOutOfRange { .. } => Row::new(ERRCODE_INTERNAL_ERROR,
                "PostgreSQL does not number its server processes as flake expects.",
                "Please report this."),
            SnoText { fault, .. } => Row::new(ERRCODE_INVALID_TEXT_REPRESENTATION,
                sentence(fault),
                "A sno is written as 16 characters from 2 to 9 and a to x."),
            SnoBytes { received, .. } => Row::new(
                if *received { ERRCODE_INVALID_BINARY_REPRESENTATION } else { ERRCODE_INVALID_PARAMETER_VALUE },
                "The bytes are the time, metabyte, partition and sequence, the most significant first.",
                ""),
            SnoPart { part, max, made, .. } => Row::new(
                if *made { ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE } else { ERRCODE_INVALID_PARAMETER_VALUE },
                format!("The valid range is 0 to {max}."),
                if *part == "partition" { "Partitions from 32768 up are assigned automatically; those below are the caller's." } else { "" }),
        }
    }

    pub fn of_refusal(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotYet => Row::new(ERRCODE_T_R_SERIALIZATION_FAILURE,
                "No session had asked for a horizon since the server started, and a transaction has committed meanwhile.",
                "Retry the transaction."),
        }
    }

    pub fn of_fault(fault: &Fault) -> Self {
        match fault {
            Fault::File(Damaged) => Row::new(ERRCODE_DATA_CORRUPTED,
                "The file is damaged, or was cut off.",
                "Restore the file. You can delete it while the server is stopped, if the clock has not been set back since the last ID."),
            Fault::File(Newer(_)) | Fault::Page(Newer(_)) => Row::new(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "This version cannot read which time was used.",
                "Install the version of flake that was in use, or a later one."),
            Fault::Page(Damaged) => Row::new(ERRCODE_DATA_CORRUPTED,
                "The page is damaged.",
                "If the clock has not been set back since the last ID was made, \
                 ALTER SEQUENCE flake_mark NO CYCLE rewrites the sequence without it."),
        }
    }
}

fn known_layouts(nearest: Option<&str>, known: &[String]) -> String {
    let nearest = nearest.map(|name| format!("Perhaps you mean \"{name}\". ")).unwrap_or_default();
    format!("{nearest}Known layouts: {}.", listed(known.iter(), "others, which the view flake_layouts shows"))
}

/// Lists the first hundred names, and how many others there are.
pub fn listed<'a>(names: impl ExactSizeIterator<Item = &'a String>, others: &str) -> String {
    const SHOWN: usize = 100;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown}, and {more} {others}") }
}

/// Writes a fault as a sentence.
fn sentence(fault: &flake_core::TextFault) -> String {
    let mut text = fault.to_string();
    text[..1].make_ascii_uppercase();
    text + "."
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

pub fn time(instant: i64) -> String {
    Timestamptz::from_instant(instant).to_text()
}
