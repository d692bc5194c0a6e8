//! SQLSTATE, DETAIL and HINT of every error, in one table.

use std::io::ErrorKind;

use flake_core::Error as CoreError;
use flake_core::horizon::host::Refusal;
use flake_core::ledger::block::Unreadable::{Damaged, Newer};
use flake_core::ledger::host::Fault;
use pgrx::PgSqlErrorCode::{self as State, *};

use super::variants::Error;
use crate::postgres::timestamptz::Timestamptz;

/// The parts of an error besides its message.
pub struct Row {
    pub sqlstate: State,
    pub detail: String,
    pub hint: Option<String>,
}

const SEE_FIELDS: &str = "The view flake_layouts shows the fields of every layout.";

/// Creates a row; an empty hint is none.
macro_rules! row {
    ($sqlstate:expr, $detail:expr, $hint:expr) => {
        Row {
            sqlstate: $sqlstate,
            detail: String::from($detail),
            hint: Some(String::from($hint)).filter(|hint| !hint.is_empty()),
        }
    };
}

/// Returns the row of an error.
#[rustfmt::skip]
pub fn row(error: &Error) -> Row {
    use Error::*;
    match error {
        // Names of layouts.
        Core(CoreError::UnknownLayout { nearest, known, .. }) => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            "Names of layouts are case-sensitive.",
            known_layouts(nearest.as_deref(), known)),
        NameTaken { is_built_in: true, .. } => row!(ERRCODE_DUPLICATE_OBJECT,
            "It is built in.",
            "Choose another name."),
        NameTaken { is_built_in: false, .. } => row!(ERRCODE_DUPLICATE_OBJECT,
            "Custom layouts are foreign servers; a layout or another foreign server has this name.",
            "Choose another name, or drop the layout with flake_drop_layout."),
        DropBuiltIn { .. } => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            "Only layouts made by flake_create_layout can be dropped.",
            "The column \"source\" of the view flake_layouts shows which these are."),

        // Definitions.
        Core(CoreError::Definition { .. }) => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            "A definition is an object with epoch, tick, fields, sequence and text, or with like and the keys that differ.",
            "For example: {\"like\": \"twitter\", \"epoch\": \"2024-01-01T00:00:00Z\"}."),
        NotALayout => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            "Foreign servers of the foreign-data wrapper flake_layout are layouts.",
            "Create layouts with flake_create_layout."),
        InUse { uses, .. } => row!(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST,
            format!("It is named in {}.", listed(uses.iter(), "others")),
            "Drop or change these objects first; DROP SERVER drops the layout all the same."),
        RowType { .. } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "The function returns the columns that the extension has declared.",
            "Undo the change, or create the extension again."),
        InsteadOfBuiltIn { .. } => row!(ERRCODE_WARNING,
            "A custom layout has this name, and keeps its meaning.",
            "To use the built-in layout, drop the custom one once nothing uses it, or create it under another name."),
        Altered { .. } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "IDs can be read only by the definition that they were made with.",
            "Undo the change, or create a layout with another name with flake_create_layout."),

        // Reading IDs.
        Core(CoreError::ImpossibleId { too_wide, width, field, .. }) => row!(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            match field {
                _ if *too_wide => format!("IDs of this layout are from 0 to {}.", u64::MAX >> (64 - width)),
                Some((name, found, must_be)) => format!("Its field \"{name}\" is {found}, but must be {must_be}."),
                None => "Its timestamp is later than any instant.".to_owned(),
            },
            "Check that the ID was made with this layout."),
        Core(CoreError::MalformedText { fault, .. }) => row!(ERRCODE_INVALID_TEXT_REPRESENTATION,
            sentence(fault),
            "The view flake_layouts shows the text form of every layout."),

        // Making IDs from their parts.
        Core(CoreError::UnknownField { known, .. }) => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            format!("Its fields are {known}."),
            SEE_FIELDS),
        Core(CoreError::PartOutOfRange { max, .. }) => row!(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            format!("The valid range is 0 to {max}."),
            SEE_FIELDS),
        Core(CoreError::OtherTick { tick, .. }) => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            format!("The tick of the given time is {tick}."),
            "Omit the timestamp from the fields, or give the time that it stands for."),
        FieldsNotAnObject => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            "Its keys are names of fields, its values their numbers.",
            "For example: {\"worker\": 3, \"sequence\": 7}. Omitted fields are 0."),
        BadNumber { is_number, .. } => row!(
            if *is_number { ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE } else { ERRCODE_INVALID_PARAMETER_VALUE },
            "Fields hold whole numbers that are not negative.",
            SEE_FIELDS),

        // Time.
        Core(CoreError::InstantOutOfRange { at, first, end, .. }) => row!(ERRCODE_DATETIME_FIELD_OVERFLOW,
            format!("{} is not between {} and {}.", time(*at), time(*first), time(*end - 1)),
            "The view flake_layouts shows the epoch and the last tick of every layout."),
        Core(CoreError::NotTimeOrdered { .. }) => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            "The order of its bits is not the order of time, so the IDs of a span of time are not a range.",
            "Use flake_timestamp(id, layout) instead, which can be indexed."),
        Core(CoreError::Exhausted { end, .. }) => row!(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
            format!("Its last tick ended at {}.", time(*end)),
            "Check the server's clock, or use a layout with a later epoch or more timestamp bits."),
        ClockBehind { behind, until, max_clock_wait, .. } | ClockBehindHorizon { behind, until, max_clock_wait } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("The clock is {behind:?} behind, and flake.max_clock_wait is {max_clock_wait:?}."),
            format!("IDs can be made again once the clock has reached {}; check its synchronization. If it is right now and was \
                ahead before, see flake_check().", time(*until))),
        LongTick { left, until, max_clock_wait, .. } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("This session has no more IDs in the present tick, which lasts {left:?} longer, until {}, and \
                flake.max_clock_wait is {max_clock_wait:?}.", time(*until)),
            "Wait, raise flake.max_clock_wait, or use a layout with a shorter tick."),

        // Making IDs.
        BadCount { count } => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            format!("The count is {count}; the valid range is 0 to {}.", i32::MAX),
            ""),
        ReadOnly { .. } => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            "flake only reads IDs of this layout.",
            "List the layouts that flake makes IDs of: SELECT name FROM flake_layouts WHERE generates."),
        InWorker => row!(ERRCODE_INVALID_TRANSACTION_STATE,
            "Horizons would not wait for its IDs: a worker's part of the transaction ends before the transaction does.",
            "Declare the function that calls flake_next, flake_batch or sno_next PARALLEL RESTRICTED."),
        Core(CoreError::NoTag { .. }) => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            "None of its fields has the role \"tag\".",
            "Call flake_next without a tag, or create a layout with a tag field with flake_create_layout."),
        Core(CoreError::TagOutOfRange { max, .. }) => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            format!("The valid range is 0 to {max}."),
            SEE_FIELDS),

        // Configuration.
        NoControlBlock { .. } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "A session makes IDs only if it shares memory with the others, as no other could know of its IDs.",
            "Add flake to shared_preload_libraries, which reserves the memory, and restart the server."),
        OtherShareRule { found, own } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("It divides the IDs of a tick by rule {found}, this version by rule {own}; together they could make the same IDs."),
            "Restart the server, so that all sessions use the new version."),
        OtherVersion { found } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("The control block in shared memory has version {found}."),
            "Restart the server, so that all sessions use the same version."),
        TooFarAhead { by, until } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("Until {}, which is {by:?} from now, no layout could make IDs.", time(*until)),
            "Check the ID, its layout, and the clock. If this is what you want, pass force => true."),

        // Horizons.
        HorizonInRecovery => row!(ERRCODE_READ_ONLY_SQL_TRANSACTION,
            "A standby does not know which transactions of the primary may still commit rows.",
            "Store flake_min(flake_horizon()) in a table on the primary, and read here what is below the value that this \
             server has replayed."),
        HorizonInWorker => row!(ERRCODE_INVALID_TRANSACTION_STATE,
            "A statement has one horizon, which its leader asks for.",
            "Declare functions that call flake_horizon() PARALLEL RESTRICTED."),
        CoverInWorker => row!(ERRCODE_INVALID_TRANSACTION_STATE,
            "A worker's part of the transaction ends before the transaction does.",
            "Declare functions that call flake_cover() PARALLEL RESTRICTED."),
        NoQuerySnapshot => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "A horizon belongs to the snapshot by which a query reads, taken since this server is no standby.",
            "Ask in the query that reads the rows, in a transaction that began after a promotion."),
        Horizon(Refusal::NotYet) => row!(ERRCODE_T_R_SERIALIZATION_FAILURE,
            "Since the start of the server nobody had asked for a horizon, and a transaction has committed meanwhile.",
            "Try again."),
        Horizon(Refusal::OtherVersion) => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "Nobody can tell which of their IDs will be committed.",
            "Restart the server, so that all sessions use the same version."),
        NoSlotMemory { .. } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "There a session leaves how far it got, and says which of its IDs are not committed yet.",
            "Add flake to shared_preload_libraries, or check max_connections and the limits of dynamic shared memory, such as the \
             size of /dev/shm. The next call tries again."),
        BelowHorizon { id, announced } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("Horizons up to {} may have been returned, and the tick of ID {id} has ended by then.", time(*announced)),
            "Make a new ID in the transaction that inserts it."),
        CoverAhead { id, by } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("By this layout, ID {id} belongs to a time that is {by:?} from now. Horizons would not wait for it."),
            "Check the ID, its layout, and the clock."),
        NotSuperuser { .. } => row!(ERRCODE_INSUFFICIENT_PRIVILEGE,
            "The marks belong to the whole server.",
            ""),
        NotOwner { owner, .. } => row!(ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("Layouts belong to the owner of the extension, role \"{owner}\", and to its members."),
            "Have a member of that role call it."),
        NotMonitor { .. } => row!(ERRCODE_INSUFFICIENT_PRIVILEGE,
            "It shows the whole server to members of pg_monitor.",
            "Have a superuser GRANT pg_monitor to this role."),
        NodeUnknown { has_run: false } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "The client, the role or the database has set flake.node_id or flake.node_count, and no background worker could be \
             started to read the server's.",
            "Remove the setting from the connection's options, or with ALTER ROLE or ALTER DATABASE … RESET; or increase \
             max_worker_processes."),
        NodeUnknown { has_run: true } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "The client, the role or the database has set flake.node_id or flake.node_count, and a background worker found no \
             valid ones in the server's configuration.",
            "Check that flake.node_id is below flake.node_count in the server's configuration, and reload it; see the server's log."),
        NodeNotInForce => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "The client, the role or the database has set flake.node_id or flake.node_count, which hides the server's from this \
             session.",
            "Remove the setting from the connection's options, or with ALTER ROLE or ALTER DATABASE … RESET; or make an ID first."),
        Core(CoreError::NodeOutOfRange { id, count }) => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            format!("flake.node_id is {id}, but flake.node_count is {count}; the valid range is 0 to {}.", count - 1),
            "Correct flake.node_id and flake.node_count in postgresql.conf and reload it."),
        Core(CoreError::TooManyNodes { workers, nodes, .. }) => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            format!("The layout has {}, but flake.node_count is {nodes}.", counted(*workers, "worker")),
            "Lower flake.node_count and restart the server, or use a layout with more worker bits."),
        Core(CoreError::EmptyShare { workers, sequences, slots, .. }) => row!(
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("In each tick, this node has {} with {} each, but {slots} server processes \
                (max_connections and other workers) divide them.", counted(*workers, "worker"),
                counted(*sequences, "sequence number")),
            "Lower flake.node_count or max_connections and restart the server, or use a layout with more worker or \
             sequence bits."),
        Core(CoreError::SlotOutOfRange { .. }) => row!(ERRCODE_INTERNAL_ERROR,
            "PostgreSQL does not number its server processes as flake expects.",
            "Please report this."),

        // The mark.
        MarkFile { kind, .. } => row!(
            match kind {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ERRCODE_DISK_FULL,
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => ERRCODE_INSUFFICIENT_PRIVILEGE,
                _ => ERRCODE_IO_ERROR,
            },
            "flake makes IDs only while this file in the data directory can record the time that they use.",
            "Check that the data directory is writable and its disk is not full."),
        Mark(Fault::File(Damaged)) => row!(ERRCODE_DATA_CORRUPTED,
            "The file is damaged, or was cut off.",
            "Restore the file. You can delete it while the server is stopped, if the clock has not been set back since the last ID."),
        NoMarkSequence => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "flake makes IDs only while this sequence can record the time that they use.",
            "Run ALTER EXTENSION flake UPDATE, or create the extension again."),
        MarkNotLogged => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "Its changes would not reach standbys, nor survive a crash.",
            "Run ALTER SEQUENCE flake_mark SET LOGGED."),
        Mark(Fault::File(Newer(_)) | Fault::Page(Newer(_))) => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "This version cannot read which time was used.",
            "Install the version of flake that was in use, or a later one."),
        Mark(Fault::Page(Damaged)) => row!(ERRCODE_DATA_CORRUPTED,
            "The page is damaged.",
            "If the clock has not been set back since the last ID was made, \
             ALTER SEQUENCE flake_mark NO CYCLE rewrites the sequence without it."),

        // The type sno.
        Core(CoreError::SnoText { fault, .. }) => row!(ERRCODE_INVALID_TEXT_REPRESENTATION,
            sentence(fault),
            "A sno is written as 16 characters from 2 to 9 and a to x."),
        Core(CoreError::SnoBytes { received, .. }) => row!(
            if *received { ERRCODE_INVALID_BINARY_REPRESENTATION } else { ERRCODE_INVALID_PARAMETER_VALUE },
            "The bytes are the time, metabyte, partition and sequence, the most significant first.",
            ""),
        Core(CoreError::SnoPart { part, max, made, .. }) => row!(
            if *made { ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE } else { ERRCODE_INVALID_PARAMETER_VALUE },
            format!("The valid range is 0 to {max}."),
            if *part == "partition" { "Partitions from 32768 up are assigned automatically; those below are the caller's." } else { "" }),
        SnoUuid => row!(ERRCODE_INVALID_TEXT_REPRESENTATION,
            "A uuid contains a sno as its 16 characters from 2 to 9 and a to x.",
            "Only a uuid that was cast from a sno can be cast back."),
    }
}

fn known_layouts(nearest: Option<&str>, known: &[String]) -> String {
    let nearest = nearest.map(|name| format!("Perhaps you mean \"{name}\". ")).unwrap_or_default();
    format!("{nearest}Known layouts: {}.", listed(known.iter(), "others, which the view flake_layouts shows"))
}

/// Lists names, the first hundred and the number of the others.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a String>, others: &str) -> String {
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

fn time(instant: i64) -> String {
    Timestamptz::from_instant(instant).to_text()
}
