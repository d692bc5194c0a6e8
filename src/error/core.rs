//! The SQLSTATE, DETAIL and HINT of the core's errors.

use flake_core::Error as CoreError;
use flake_core::ledger::durable::record_format::Unreadable::{Damaged, Newer};
use flake_core::ledger::host::Fault;
use flake_core::watermark::host::Refusal;
use pgrx::PgSqlErrorCode::*;

use super::Error;
use crate::postgres::timestamptz::to_text;

pub const SEE_FIELDS: &str = "The view flake_layouts shows the fields of every layout.";
const SNO_BYTES: &str = "The bytes are the time, metabyte, partition and sequence, the most significant first.";

#[rustfmt::skip]
impl From<CoreError> for Error {
    fn from(error: CoreError) -> Self {
        use CoreError::*;
        let message = error.to_string();
        match error {
            UnknownLayout { nearest, known, others, .. } => Self::invalid(message)
                .detail("Names of layouts are case-sensitive.")
                .hint(known_layouts(nearest.as_deref(), &known.join(", "), others)),
            Definition { .. } => Self::invalid(message)
                .detail("A definition is an object with epoch, tick, fields and text, or with like and the keys that differ.")
                .hint("For example: {\"like\": \"twitter\", \"epoch\": \"2024-01-01T00:00:00Z\"}."),
            ImpossibleId { too_wide, width, field, .. } => Self::of(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, message)
                .detail(match field {
                    _ if too_wide => format!("IDs of this layout are from 0 to {}.", u64::MAX >> (64 - width)),
                    Some((name, found, must_be)) => format!("Its field \"{name}\" is {found}, but must be {must_be}."),
                    None => "Its time is later than the type timestamptz can hold.".to_owned(),
                })
                .hint("Check that the ID was made with this layout."),
            MalformedText { fault, .. } => Self::of(ERRCODE_INVALID_TEXT_REPRESENTATION, message)
                .detail(sentence(&fault))
                .hint("The view flake_layouts shows the text form of every layout."),
            UnknownField { known, .. } => Self::invalid(message)
                .detail(format!("Its fields are {known}."))
                .hint(SEE_FIELDS),
            PartOutOfRange { max, .. } => Self::of(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, message)
                .detail(format!("The valid range is 0 to {max}."))
                .hint(SEE_FIELDS),
            OtherTick { tick, .. } => Self::invalid(message)
                .detail(format!("The tick of the given time is {tick}."))
                .hint("Omit the timestamp from the fields, or give the time that it stands for."),
            InstantOutOfRange { layout, at, first, end } => {
                let error = Self::of(ERRCODE_DATETIME_FIELD_OVERFLOW, message)
                    .detail(format!("{} is not between {} and {}.", to_text(at), to_text(first), to_text(end - 1)));
                let hint = "The view flake_layouts shows the epoch and the last tick of every layout.";
                // The view has no row for snos.
                if layout == "sno" { error } else { error.hint(hint) }
            }
            NotTimeOrdered { .. } => Self::invalid(message)
                .detail("The order of its bits is not the order of time, so the IDs of a span of time are not a range.")
                .hint("Use flake_timestamp(id, layout) instead, which can be indexed."),
            BeforeEpoch { now, epoch, .. } => Self::not_ready(message)
                .detail(format!("The clock says {}, and the epoch is {}.", to_text(now), to_text(epoch)))
                .hint("Check the server's clock; a server that has just started may not have synchronized it yet."),
            Exhausted { end, .. } => Self::of(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED, message)
                .detail(format!("Its last tick ended at {}.", to_text(end)))
                .hint("Check the server's clock, or use a layout with a later epoch or more timestamp bits."),
            NoTag { .. } => Self::invalid(message)
                .detail("None of its fields has the role \"tag\".")
                .hint("Call flake_next without a tag, or use flake_create_layout to create a layout that has a tag field."),
            TagOutOfRange { max, .. } => Self::invalid(message).detail(format!("The valid range is 0 to {max}.")).hint(SEE_FIELDS),
            NodeOutOfRange { id, count } => Self::invalid(message)
                .detail(format!("flake.node_id is {id}, but flake.node_count is {count}; the valid range is 0 to {}.", count - 1))
                .hint("Correct flake.node_id and flake.node_count in the server's configuration, and reload it. A setting of its command line \
                 needs a restart."),
            TooManyNodes { workers, nodes, .. } => Self::invalid(message)
                .detail(format!("The layout has {}, but flake.node_count is {nodes}.", counted(workers, "worker")))
                .hint("Lower flake.node_count and restart the server, or use a layout with more worker bits."),
            TooFewIds { workers, sequences, parts, .. } => Self::not_ready(message)
                .detail(format!("In each tick, this node has {} with {} each, which cannot be divided into {parts} parts.",
                    counted(workers, "worker"), counted(sequences, "sequence number")))
                .hint("Lower flake.node_count and restart the server, or use a layout with more worker or sequence bits."),
            SnoText { fault, .. } => Self::of(ERRCODE_INVALID_TEXT_REPRESENTATION, message)
                .detail(sentence(&fault))
                .hint("A sno is written as 16 characters from 2 to 9 and a to x."),
            SnoBytes { received: false, .. } => Self::invalid(message).detail(SNO_BYTES),
            SnoBytes { .. } => Self::of(ERRCODE_INVALID_BINARY_REPRESENTATION, message).detail(SNO_BYTES),
            SnoPart { part, max, made, .. } => {
                let sqlstate = if made { ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE } else { ERRCODE_INVALID_PARAMETER_VALUE };
                let error = Self::of(sqlstate, message).detail(format!("The valid range is 0 to {max}."));
                let hint = "Partitions from 32768 up are assigned automatically; those below are the caller's.";
                if part == "partition" { error.hint(hint) } else { error }
            }
        }
    }
}

#[rustfmt::skip]
impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotYet => Self::of(ERRCODE_T_R_SERIALIZATION_FAILURE, refusal.to_string())
                .detail("No session had asked for a watermark since the server started, and a transaction has committed meanwhile.")
                .hint("Retry the transaction."),
        }
    }
}

#[rustfmt::skip]
impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let message = fault.to_string();
        match fault {
            Fault::File(Damaged) => Self::of(ERRCODE_DATA_CORRUPTED, message)
                .detail("The file is damaged, or was cut off.")
                .hint("Restore the file. You can delete it while the server is stopped, if the clock has not been set back since the last ID."),
            Fault::File(Newer(_)) | Fault::Page(Newer(_)) => Self::not_ready(message)
                .detail("This version cannot read which time was used.")
                .hint("Install the version of flake that was in use, or a later one."),
            Fault::Turn(timeline) => Self::not_ready(message)
                .detail(format!("The file pg_wal/{timeline:08X}.history does not name all timelines before this one, and nothing says \
                    which turn the last one had. An earlier primary may make IDs in any turn."))
                .hint("Put the whole history file there. If no earlier primary makes IDs any more, a superuser can call \
                    flake_accept_turn()."),
            Fault::Lead(lead, most) => Self::not_ready(message)
                .detail(format!("IDs of earlier times exist that are {} ahead of the clock, and flake.max_lead is {}.", seconds(lead), seconds(most)))
                .hint("Check the clock. If it is right, a superuser can call flake_accept_clock() in each database; or raise flake.max_lead, \
                    and reload the configuration."),
            Fault::BothLead(lead, most) => Self::not_ready(message)
                .detail(format!("IDs of both generations are at least {} ahead of the clock, and flake.max_lead is {}.", seconds(lead), seconds(most)))
                .hint("Check the clock. If it is right, raise flake.max_lead above that, and reload the configuration: IDs are then ahead \
                    of the clock until it has caught up."),
            Fault::Page(Damaged) => Self::of(ERRCODE_DATA_CORRUPTED, message)
                .detail("The page is damaged.")
                .hint("If the clock has not been set back since the last ID was made, \
                 ALTER SEQUENCE flake_internal.flake_mark NO CYCLE rewrites the sequence without this page."),
        }
    }
}

fn known_layouts(nearest: Option<&str>, known: &str, others: usize) -> String {
    let nearest = nearest.map(|name| format!("Perhaps you mean \"{name}\". ")).unwrap_or_default();
    let others = match others {
        0 => String::new(),
        others => format!(", and {others} others, which the view flake_layouts shows"),
    };
    format!("{nearest}Known layouts: {known}{others}.")
}

/// Writes microseconds as seconds.
fn seconds(micros: i64) -> String {
    format!("{:?}", std::time::Duration::from_micros(micros.max(0).unsigned_abs()))
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
