//! SQLSTATE, DETAIL and HINT of every error, in one table.

use std::io::ErrorKind;

use flake_core::horizon::host::Refusal;
use flake_core::ledger::block::Unreadable::{Damaged, Newer};
use flake_core::ledger::host::Fault;
use flake_core::{Error as CoreError, Remedy};
use pgrx::PgSqlErrorCode::{self as State, *};

use super::obstacle::Obstacle;
use super::variants::Error;
use crate::postgres::timestamptz::Timestamptz;

/// The parts of an error besides its message.
pub struct Row {
    pub sqlstate: State,
    pub detail: String,
    pub hint: Option<String>,
}

const SEE_FIELDS: &str = "The view flake_layouts shows the fields of every layout.";
const WIDEN: &str = "Widen the key and all columns that refer to it first, such as by examples/widen.sql.";

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
    use Obstacle::*;
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
        NothingPublished => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "A standby returns horizons that its primary has published; this snapshot is older than those that it has replayed.",
            "Call flake_publish_horizon() on the primary, and ask again by a new snapshot once this server has replayed that."),
        HorizonInWorker => row!(ERRCODE_INVALID_TRANSACTION_STATE,
            "A statement has one horizon, which its leader asks for.",
            "Declare functions that call flake_horizon() PARALLEL RESTRICTED."),
        CoverInWorker => row!(ERRCODE_INVALID_TRANSACTION_STATE,
            "A worker's part of the transaction ends before the transaction does.",
            "Declare functions that call flake_cover() PARALLEL RESTRICTED."),
        NoQuerySnapshot => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "A horizon belongs to the snapshot by which a query reads.",
            "Ask in the query that reads the rows."),
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

        // Taking rows.
        NullArgument { why, .. } => row!(ERRCODE_NULL_VALUE_NOT_ALLOWED, *why, ""),
        BadMost { most } => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            format!("It is {most}; the valid range is 1 to {}.", i32::MAX),
            ""),
        NoSetExpected => row!(ERRCODE_FEATURE_NOT_SUPPORTED,
            "It returns any number of rows.",
            "Call it in FROM."),
        TakeByOldSnapshot => row!(ERRCODE_INVALID_TRANSACTION_STATE,
            "In REPEATABLE READ and SERIALIZABLE, the snapshot can be older than the turn of this consumer, and than the table.",
            "Take rows in READ COMMITTED."),
        NoTable => row!(ERRCODE_WRONG_OBJECT_TYPE,
            "The first argument is NULL of the type of the rows of a table, no view and no foreign table.",
            "For example: SELECT * FROM flake_take(NULL::outbox, 'positions', 'mailer', 100)."),
        RowSecurity { .. } => row!(ERRCODE_INSUFFICIENT_PRIVILEGE,
            "The position would move over rows that it hides.",
            "Take rows as a role that the policies do not apply to, such as one with BYPASSRLS."),
        OtherColumns { .. } => row!(ERRCODE_T_R_SERIALIZATION_FAILURE,
            "The query has the columns from when it began.",
            "Call again, in a new transaction."),
        Error::NoKey { .. } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "The key is the one column of type bigint or sno whose default is flake_next, with the name of a layout, or sno_next, and \
             that an index of all rows begins with. Its partitions and children, and what it is a partition of, make IDs of no other layout.",
            "Give it such a default and a primary key; let only one column have both."),
        PositionType { is_sno, .. } => row!(ERRCODE_DATATYPE_MISMATCH,
            "The position of a consumer is the key of a row of the table that is its source.",
            format!("CREATE TABLE positions (name text, source regclass, last {}, PRIMARY KEY (name, source)).",
                if *is_sno { "sno" } else { "bigint" })),
        NoPosition { .. } => row!(ERRCODE_UNDEFINED_OBJECT,
            "It is a row with the name of the consumer, and the table as its source.",
            "For one that begins with the first row: INSERT INTO positions VALUES ('mailer', 'outbox')."),
        PositionAhead { .. } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "Rows below it may still come, and would never be taken. It is from another server or of another layout, or \
             flake_accept_clock has gone below it.",
            "Set it to the last row that the consumer has taken, or back to the time that flake_accept_clock has returned."),
        NotMoved { .. } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "A trigger, a rule or a policy has kept it, so the rows would come again, or there are several such rows.",
            "Have a table with a primary key of name and source."),
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
            "Correct flake.node_id and flake.node_count in the server's configuration, and reload it; what its command line sets \
             needs a restart."),
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

        // Public IDs.
        UnknownKey { .. } => row!(ERRCODE_UNDEFINED_OBJECT,
            "Keys are foreign servers of the foreign-data wrapper flake_key.",
            "Create one with flake_create_key."),
        NoUsage { key } => row!(ERRCODE_INSUFFICIENT_PRIVILEGE,
            "Public IDs are made and read by roles that have USAGE on the foreign server of this name.",
            format!("The key's owner can grant it: GRANT USAGE ON FOREIGN SERVER {key} TO …")),
        NoSecret { fingerprint, found, .. } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            match found {
                Some(found) => format!("The secret with the fingerprint {fingerprint} sealed its IDs; the one that is stored has {found}."),
                None => format!("The secret with the fingerprint {fingerprint} is missing; a dump by a role that may not read it has none."),
            },
            "Restore the user mapping of PUBLIC from a dump by the key's owner or a superuser, or call flake_import_key with the secret."),
        UnreadableKey { .. } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "They say which secret belongs to which IDs, in a form that this version does not know.",
            "Undo the change by ALTER SERVER, or install the version of flake that was in use."),
        NotSealed { .. } => row!(ERRCODE_INVALID_TEXT_REPRESENTATION,
            "It was not made by flake_seal with this key, or has been changed since.",
            "flake_unseal returns NULL instead, for conditions."),
        KeyName { .. } => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            "A name has up to 63 of the letters a to z, and underscores between them.",
            "Choose a short name, such as \"usr\": public IDs begin with it."),
        KeyTaken { .. } => row!(ERRCODE_DUPLICATE_OBJECT,
            "Keys are foreign servers; a key, a layout or another foreign server has this name.",
            "Choose another name."),
        SecretTaken { .. } => row!(ERRCODE_DUPLICATE_OBJECT,
            "With another name, its public IDs would have two spellings.",
            "Use that key, or create one with a secret of its own with flake_create_key."),
        SecretLength { .. } => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            "It is a key of AES-128.",
            "flake_create_key makes one from random numbers."),
        RotatedBelow { last, .. } => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            match last {
                &i64::MIN => "Its first secret has to keep some IDs.".to_owned(),
                last => format!("Its last secret is for the IDs from {last} on, and has to keep some of them."),
            },
            "Give an ID above all that have been made, such as flake_min(now() + interval '1 minute')."),
        TooManyRotations { .. } => row!(ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            "A key can have four secrets, as each is tried for what was not sealed.",
            "Create another key for new IDs with flake_create_key."),
        KeyInUse { uses, .. } => row!(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST,
            format!("It is named in {}.", listed(uses.iter(), "others")),
            "Drop or change these objects first; DROP SERVER … CASCADE drops the key all the same."),
        NotAKey => row!(ERRCODE_INVALID_PARAMETER_VALUE,
            "Foreign servers of the foreign-data wrapper flake_key are keys.",
            "Create keys with flake_create_key."),

        // Converting tables.
        NotConvertible { why, .. } => match why {
            Kind { is } => row!(ERRCODE_WRONG_OBJECT_TYPE,
                *is,
                "flake_convert converts tables, and all partitions with the table that they belong to."),
            Owner => row!(ERRCODE_INSUFFICIENT_PRIVILEGE,
                "flake_convert alters it as the role that calls, which does not own it.",
                "Have its owner or a member of that role call it."),
            NoTimeout => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "While flake_convert waits for its lock, whatever else uses the table waits as well; lock_timeout is 0, so for as long \
                 as that takes.",
                "Run SET LOCAL lock_timeout = '2s' before, in the same transaction."),
            Isolation => row!(ERRCODE_INVALID_TRANSACTION_STATE,
                "A transaction of this isolation level does not see the keys that others have committed since it began.",
                "Use READ COMMITTED."),
            Obstacle::NoKey => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "It has no primary key, by whose index the greatest ID could be found.",
                "Add one, such as by ALTER TABLE … ADD PRIMARY KEY USING INDEX."),
            Columns { names } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("Its primary key has several columns: {}.", names.join(", ")),
                "Change the default of one of them by ALTER TABLE; see docs/how-to/convert.md."),
            Type { column, of, is_narrow } => row!(ERRCODE_DATATYPE_MISMATCH,
                format!("Its key {column} is of type {of}; IDs are of type bigint."),
                if *is_narrow { WIDEN } else { "IDs of other types are no numbers that new IDs could be above." }),
            Narrow { columns } => row!(ERRCODE_DATATYPE_MISMATCH,
                format!("Columns that refer to its key are too small for IDs: {}.", columns.join(", ")),
                WIDEN),
            Converted { column } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("The default of its key {column} calls flake already."),
                "Run the statement \"undo\" of the first conversion before you convert to another layout."),
            NoIndex { tables } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("No index on the key finds the greatest ID in: {}.", listed(tables.iter(), "others")),
                "Create a B-tree index there that begins with the key."),
            OtherDefault { tables } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("The key has another default in: {}.", listed(tables.iter(), "others")),
                "ALTER TABLE … SET DEFAULT gives all of them the same one, which \"undo\" can bring back."),
            Tag { layout } => row!(ERRCODE_INVALID_PARAMETER_VALUE,
                format!("Layout \"{layout}\" has a tag field, for a number of yours."),
                "Set the default flake_next(layout, tag) by ALTER TABLE."),
            Unordered { layout } => row!(ERRCODE_INVALID_PARAMETER_VALUE,
                format!("IDs of layout \"{layout}\" are not in the order of time, so new ones can be among those of the table."),
                "Use a layout that has a time in the column \"sortable_until\" of the view flake_layouts."),
            Above { layout, greatest, first, remedy } => row!(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("Its greatest ID is {greatest}, and the next one of layout \"{layout}\" would be {first}."),
                match remedy {
                    Remedy::StartAbove => format!("Have a superuser run SELECT flake_start_above({greatest}, '{layout}') before."),
                    Remedy::Layouts(names) => format!("IDs of these layouts are above it: {}.", names.join(", ")),
                    Remedy::EarlierEpoch => "IDs of a custom layout with an earlier epoch can be above it.".to_owned(),
                    Remedy::NoRoom => "New keys that are ordered by time can meet random ones; give the rows IDs by their time, \
                                       as docs/how-to/convert.md does.".to_owned(),
                }),
        },

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
