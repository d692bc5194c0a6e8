//! The extension's errors: the core's, and the ones that only a database can have, each with its SQLSTATE, DETAIL and HINT.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::time::Duration;

use flake_core::horizon::host::Refusal;
use flake_core::ledger::host::Fault;
use flake_core::ledger::line::MOST_LINES;
use pgrx::PgSqlErrorCode::*;
use pgrx::spi::quote_identifier;

use super::define::errors;
use super::obstacle::Obstacle;
use super::row::{Row, SEE_FIELDS, listed, time};

type Name = Cow<'static, str>;

errors! {
    // Making IDs.
    #[error("count must not be negative")]
    BadCount { count: i32 } => ERRCODE_INVALID_PARAMETER_VALUE,
        format!("The count is {count}; the valid range is 0 to {}.", i32::MAX),
        "";
    #[error("cannot make IDs of layout \"{layout}\"")]
    ReadOnly { layout: Name } => ERRCODE_INVALID_PARAMETER_VALUE,
        "flake only reads IDs of this layout.",
        "List the layouts that flake makes IDs of: SELECT name FROM flake_layouts WHERE generates.";
    #[error("cannot make IDs in a parallel worker")]
    InWorker => ERRCODE_INVALID_TRANSACTION_STATE,
        "Horizons would not wait for its IDs: a worker's part of the transaction ends before the transaction does.",
        "Declare the function that calls flake_next, flake_batch or sno_next PARALLEL RESTRICTED.";
    /// The clock is behind the last ID until this instant. `behind` includes the time that the session has already waited.
    #[error("clock is behind the last ID of layout \"{layout}\"")]
    ClockBehind { layout: Name, behind: Duration, until: i64, max_clock_wait: Duration } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        behind_by(*behind, *max_clock_wait),
        right_again(*until);
    /// The clock is behind a horizon, below which no session makes IDs any more.
    #[error("clock is behind a horizon that was returned")]
    ClockBehindHorizon { behind: Duration, until: i64, max_clock_wait: Duration } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        behind_by(*behind, *max_clock_wait),
        right_again(*until);
    /// The session has no IDs before this instant, when the next tick begins.
    #[error("next tick of layout \"{layout}\" is too far away")]
    LongTick { layout: Name, left: Duration, until: i64, max_clock_wait: Duration } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("This session has no more IDs in the current tick, which lasts {left:?} longer, until {}, and \
            flake.max_clock_wait is {max_clock_wait:?}.", time(*until)),
        "Wait, raise flake.max_clock_wait, or use a layout with a shorter tick.";

    // Configuration.
    #[error("could not get shared memory: {reason}")]
    NoSharedMemory { reason: String } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "A session makes IDs only if it shares memory with the other sessions, which would not know of its IDs otherwise.",
        "Check max_connections and the limits of dynamic shared memory, such as the size of /dev/shm. If the server's main segment has no \
         room, add flake to shared_preload_libraries, which reserves some, and restart the server. The next call tries again.";
    #[error("number of this node is not known")]
    NodeUnknown => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "This session cannot see flake.node_id and flake.node_count of the server: the client, the role or the database has set one \
         of them, or the server's own value is not a number or was removed.",
        "Remove the setting from the connection's options, or with ALTER ROLE or ALTER DATABASE … RESET; restart the server after its \
         own value was removed. With flake in shared_preload_libraries, every session sees the server's.";
    /// `found` is the form of shared memory and the division of IDs of the version that has created the shared memory.
    #[error("another version of the flake library is in use")]
    OtherVersion { found: (u32, u32) } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("The server's shared memory has form {} with division {}, and this version has others; together they could make the \
            same IDs.", found.0, found.1),
        "Restart the server. If flake is in shared_preload_libraries, all sessions use the version that the server was started with.";
    /// The shared memory has words for a limited number of lanes.
    #[error("too many layouts are in use on this server")]
    TooManyLayouts { layout: Name } => ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
        format!("All {MOST_LINES} lanes in shared memory belong to other layouts, so none is left for layout \"{layout}\"."),
        "Restart the server, and use fewer layouts. A layout that was dropped keeps its lanes until the restart.";

    // Leases.
    #[error("workers of layout \"{layout}\" cannot be leased")]
    NotLeasable { layout: Name } => ERRCODE_FEATURE_NOT_SUPPORTED,
        "An application composes IDs of a timestamp, a worker and a sequence number, in this order and nothing else, with ticks of at \
         most a second.",
        "Use a layout such as \"twitter\", or flake_batch.";
    #[error("lease of worker {worker} of layout \"{layout}\" cannot be renewed")]
    LeaseLost { layout: Name, worker: u32 } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "It has been renewed since, another application has the worker, or the server was restarted.",
        "Ask for a new lease, without a worker.";
    #[error("worker and end of a lease have to be given together")]
    HalfALease => ERRCODE_INVALID_PARAMETER_VALUE,
        "A lease is renewed by its worker and the end that the last answer had.",
        "Give both, or none for a new lease.";
    #[error("all workers of layout \"{layout}\" are leased")]
    NoFreeWorker { layout: Name, until: i64 } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("A database can have half of the workers that applications lease from this server. The next lease ends at {}.", time(*until)),
        "Wait until then, or use a layout with more workers.";
    #[error("too many leases")]
    TooManyLeases => ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
        format!("A server can have {} leases at once.", flake_core::ledger::pool::MOST_LEASES),
        "Let the processes of an application share one lease.";

    #[error("ID is too far ahead of the clock")]
    TooFarAhead { by: Duration, until: i64 } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("Until {}, which is {by:?} from now, no layout could make IDs.", time(*until)),
        "Check the ID, its layout, and the clock. If this is what you want, pass force => true: no restart, failover or other \
         flake.node_id takes it back.";

    // Horizons.
    #[error("no horizon is known for this snapshot")]
    NothingPublished => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "A standby returns horizons that its primary has published; this snapshot is older than all that were replayed.",
        "Call flake_publish_horizon() on the primary, and ask again by a new snapshot once this server has replayed it.";
    #[error("cannot ask for a horizon in a parallel worker")]
    HorizonInWorker => ERRCODE_INVALID_TRANSACTION_STATE,
        "A statement has one horizon, which its leader asks for.",
        "Declare functions that call flake_horizon() PARALLEL RESTRICTED.";
    #[error("there is no snapshot of a query to ask for its horizon")]
    NoQuerySnapshot => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "A horizon belongs to the snapshot by which a query reads.",
        "Ask in the query that reads the rows.";
    /// A horizon up to this instant may have been returned.
    #[error("ID may be below a horizon")]
    BelowHorizon { id: String, announced: i64 } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("Horizons up to {} may have been returned, and the tick of ID {id} has ended by then.", time(*announced)),
        "Make a new ID in the transaction that inserts it.";
    /// The ID is too far ahead by the layout that was named, so another layout has made it.
    #[error("ID is too far ahead of the clock")]
    CoverAhead { id: String, by: Duration } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("By this layout, ID {id} belongs to a time that is {by:?} from now. Horizons would not wait for it."),
        "Check the ID, its layout, and the clock.";
    #[error("cannot cover an ID in a parallel worker")]
    CoverInWorker => ERRCODE_INVALID_TRANSACTION_STATE,
        "A worker's part of the transaction ends before the transaction does.",
        "Declare functions that call flake_cover() PARALLEL RESTRICTED.";

    // Taking rows.
    #[error("argument \"{name}\" must not be null")]
    NullArgument { name: &'static str, why: &'static str } => ERRCODE_NULL_VALUE_NOT_ALLOWED,
        *why,
        "";
    #[error("number of rows must be positive")]
    BadMost { most: i32 } => ERRCODE_INVALID_PARAMETER_VALUE,
        format!("It is {most}; the valid range is 1 to {}.", i32::MAX),
        "";
    #[error("function that returns a set of rows was called where no set is expected")]
    NoSetExpected => ERRCODE_FEATURE_NOT_SUPPORTED,
        "It returns any number of rows.",
        "Call it in FROM.";
    #[error("cannot take rows in a transaction with one snapshot")]
    TakeByOldSnapshot => ERRCODE_INVALID_TRANSACTION_STATE,
        "In REPEATABLE READ and SERIALIZABLE, the snapshot can be older than the turn of this consumer, and than the table.",
        "Take rows in READ COMMITTED.";
    #[error("rows can be taken from tables only")]
    NoTable => ERRCODE_WRONG_OBJECT_TYPE,
        "The first argument is NULL, cast to the row type of a table. Views and foreign tables are not supported.",
        "For example: SELECT * FROM flake_take(NULL::outbox, 'positions', 'mailer', 100).";
    #[error("row security of table {table} applies to the current role")]
    RowSecurity { table: String } => ERRCODE_INSUFFICIENT_PRIVILEGE,
        "The position would move over rows that the policies hide.",
        "Take rows as a role that the policies do not apply to, such as one with BYPASSRLS.";
    #[error("columns of table {table} have changed while the call waited")]
    OtherColumns { table: String } => ERRCODE_T_R_SERIALIZATION_FAILURE,
        "The query has the columns from when it began.",
        "Call again, in a new transaction.";
    #[error("table {table} has no key to take its rows by")]
    NoKey { table: String } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "The key is a column of type bigint or sno. Its default is flake_next with the name of a layout, or sno_next, and an index of \
         all rows begins with it. Partitions, children and parents of the table must not make IDs of another layout.",
        "Give exactly one column such a default, and make it the primary key.";
    #[error("column \"{column}\" of positions in {positions} is missing, or has the wrong type")]
    PositionType { column: &'static str, positions: String, is_sno: bool } => ERRCODE_DATATYPE_MISMATCH,
        "The position of a consumer is the key of a row of the table that is its source.",
        format!("CREATE TABLE positions (name text, source regclass, last {}, PRIMARY KEY (name, source)).",
            if *is_sno { "sno" } else { "bigint" });
    #[error("consumer \"{consumer}\" has no position for table {table} in {positions}")]
    NoPosition { consumer: String, table: String, positions: String } => ERRCODE_UNDEFINED_OBJECT,
        "A position is a row with the name of the consumer, and with the table as its source.",
        "For one that begins with the first row: INSERT INTO positions VALUES ('mailer', 'outbox').";
    #[error("position in table {table} is ahead of the clock")]
    PositionAhead { table: String } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "Rows below it may still appear, and would never be taken. The position is from another server or another layout, or \
         flake_accept_clock has gone below it.",
        "Set the position to the last row that the consumer has taken, or to the time that flake_accept_clock has returned.";
    #[error("position in {positions} was not moved")]
    NotMoved { positions: String } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "A trigger, a rule or a policy prevented it, or several rows have this name and source. The rows would be taken twice.",
        "Create a table with PRIMARY KEY (name, source).";

    // Privileges.
    #[error("must be superuser to call {function}")]
    NotSuperuser { function: &'static str } => ERRCODE_INSUFFICIENT_PRIVILEGE,
        "The marks belong to the whole server.",
        "";
    #[error("must be owner of extension flake to call {function}")]
    NotOwner { function: &'static str, owner: String } => ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("The owner of the extension is role \"{owner}\"."),
        "Call it as a member of that role.";
    #[error("permission denied for {what}")]
    NotMonitor { what: &'static str } => ERRCODE_INSUFFICIENT_PRIVILEGE,
        "Only members of pg_monitor see the whole server.",
        "A superuser can GRANT pg_monitor to this role.";

    // IDs from their parts.
    #[error("fields must be a JSON object")]
    FieldsNotAnObject => ERRCODE_INVALID_PARAMETER_VALUE,
        "Its keys are names of fields, its values their numbers.",
        "For example: {\"worker\": 3, \"sequence\": 7}. Omitted fields are 0.";
    #[error("invalid value for field \"{field}\" of layout \"{layout}\": {value}")]
    BadNumber { layout: Name, field: String, value: String, is_number: bool } =>
        if *is_number { ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE } else { ERRCODE_INVALID_PARAMETER_VALUE },
        "Fields hold whole numbers that are not negative.",
        SEE_FIELDS;
    #[error("uuid does not contain a sno")]
    SnoUuid => ERRCODE_INVALID_TEXT_REPRESENTATION,
        "A uuid contains a sno as its 16 characters from 2 to 9 and a to x.",
        "Only a uuid that was cast from a sno can be cast back.";

    // Custom layouts.
    #[error("layout \"{layout}\" already exists")]
    NameTaken { layout: Name, is_built_in: bool } => ERRCODE_DUPLICATE_OBJECT,
        if *is_built_in {
            "It is built in."
        } else {
            "Custom layouts are foreign servers; a layout or another foreign server has this name."
        },
        if *is_built_in { "Choose another name." } else { "Choose another name, or drop the layout with flake_drop_layout." };
    #[error("cannot drop layout \"{layout}\" because it is built in")]
    DropBuiltIn { layout: Name } => ERRCODE_INVALID_PARAMETER_VALUE,
        "Only layouts made by flake_create_layout can be dropped.",
        "The column \"source\" of the view flake_layouts shows which these are.";
    #[error("cannot drop layout \"{layout}\" because other objects name it")]
    InUse { layout: Name, uses: BTreeSet<String> } => ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST,
        format!("It is named in {}.", listed(uses.iter(), "others")),
        "Drop or change these objects first; DROP SERVER drops the layout all the same.";
    #[error("layout \"{layout}\" is not the built-in one")]
    InsteadOfBuiltIn { layout: Name } => ERRCODE_WARNING,
        "A custom layout has this name, and takes precedence.",
        "To use the built-in layout, drop the custom one once nothing uses it, or create it under another name.";
    #[error("definition of layout \"{layout}\" has been changed")]
    Altered { layout: Name } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "IDs can be read only by the definition that they were made with.",
        "Undo the change, or create a layout with another name with flake_create_layout.";
    #[error("a layout must have the option \"definition\" and no other")]
    NotALayout => ERRCODE_INVALID_PARAMETER_VALUE,
        "Foreign servers of the foreign-data wrapper flake_layout are layouts.",
        "Create layouts with flake_create_layout.";

    // Public IDs.
    #[error("key \"{key}\" does not exist")]
    UnknownKey { key: String } => ERRCODE_UNDEFINED_OBJECT,
        "Keys are foreign servers of the foreign-data wrapper flake_key.",
        "Create one with flake_create_key.";
    #[error("permission denied for key \"{key}\"")]
    NoUsage { key: String } => ERRCODE_INSUFFICIENT_PRIVILEGE,
        "Public IDs are made and read by roles that have USAGE on the foreign server of this name.",
        format!("The key's owner can grant it: GRANT USAGE ON FOREIGN SERVER {} TO …", quote_identifier(key));
    /// The error shows the fingerprint of the secret that was found.
    #[error("secret of key \"{key}\" is missing or has been changed")]
    NoSecret { key: String, fingerprint: String, found: Option<String> } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        match found {
            Some(found) => format!("The secret with the fingerprint {fingerprint} sealed its IDs; the one that is stored has {found}."),
            None => format!("The secret with the fingerprint {fingerprint} is missing; a dump by a role that may not read it has none."),
        },
        "Restore the user mapping of PUBLIC from a dump by the key's owner or a superuser, or call flake_import_key with the secret.";
    #[error("options of key \"{key}\" have been changed")]
    UnreadableKey { key: String } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "They say which secret belongs to which IDs, in a form that this version does not know.",
        "Undo the change by ALTER SERVER, or install the version of flake that was in use.";
    #[error("invalid public ID of key \"{key}\": \"{text}\"")]
    NotSealed { text: String, key: String } => ERRCODE_INVALID_TEXT_REPRESENTATION,
        "It was not made by flake_seal with this key, or has been changed since.",
        "Use flake_unseal, which returns NULL instead, in conditions.";
    #[error("invalid name for a key: \"{key}\"")]
    KeyName { key: String } => ERRCODE_INVALID_PARAMETER_VALUE,
        "A name has up to 63 of the letters a to z, and underscores between them.",
        "Choose a short name, such as \"usr\": public IDs begin with it.";
    #[error("key \"{key}\" already exists")]
    KeyTaken { key: String } => ERRCODE_DUPLICATE_OBJECT,
        "Keys are foreign servers; a key, a layout or another foreign server has this name.",
        "Choose another name.";
    #[error("secret belongs to key \"{key}\" already")]
    SecretTaken { key: String } => ERRCODE_DUPLICATE_OBJECT,
        "With another name, its public IDs would have two spellings.",
        "Use that key, or create one with a secret of its own with flake_create_key.";
    #[error("secret of a key must have 16 bytes, not {length}")]
    SecretLength { length: usize } => ERRCODE_INVALID_PARAMETER_VALUE,
        "It is a key of AES-128.",
        "flake_create_key makes one from random numbers.";
    #[error("key \"{key}\" cannot have another secret from ID {from} on")]
    RotatedBelow { key: String, from: i64, last: i64 } => ERRCODE_INVALID_PARAMETER_VALUE,
        match last {
            &i64::MIN => "Its first secret must keep some IDs.".to_owned(),
            last => format!("Its last secret is for the IDs from {last} on, and must keep some of them."),
        },
        "Give an ID above all that have been made, such as flake_min(now() + interval '1 minute').";
    #[error("key \"{key}\" has had too many rotations")]
    TooManyRotations { key: String } => ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        "A key can have four secrets, because each of them is tried for a text that was not sealed.",
        "Create another key for new IDs with flake_create_key.";
    #[error("cannot drop key \"{key}\" because other objects name it")]
    KeyInUse { key: String, uses: BTreeSet<String> } => ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST,
        format!("It is named in {}.", listed(uses.iter(), "others")),
        "Drop or change these objects first; DROP SERVER … CASCADE drops the key all the same.";
    #[error("invalid options for a key")]
    NotAKey => ERRCODE_INVALID_PARAMETER_VALUE,
        "Foreign servers of the foreign-data wrapper flake_key are keys.",
        "Create keys with flake_create_key.";

    /// A type of the extension was altered.
    #[error("type {name} has been altered")]
    RowType { name: &'static str } => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "The function returns the columns that the extension has declared.",
        "Undo the change, or create the extension again.";

    // The mark.
    #[error("could not {operation} file \"flake.mark\": {reason}")]
    MarkFile { operation: &'static str, reason: String, kind: ErrorKind } =>
        match kind {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ERRCODE_DISK_FULL,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => ERRCODE_INSUFFICIENT_PRIVILEGE,
            _ => ERRCODE_IO_ERROR,
        },
        "flake makes IDs only while this file in the data directory can record the time that they use.",
        "Check that the data directory is writable and its disk is not full.";
    #[error("sequence \"flake_mark\" of extension \"flake\" does not exist")]
    NoMarkSequence => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "flake makes IDs only while this sequence can record the time that they use.",
        "Run ALTER EXTENSION flake UPDATE, or create the extension again.";
    #[error("sequence \"flake_mark\" of extension \"flake\" is not logged")]
    MarkNotLogged => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "Its changes would not reach standbys, nor survive a crash.",
        "Run ALTER SEQUENCE flake_mark SET LOGGED.";
}

fn behind_by(behind: Duration, max_clock_wait: Duration) -> String {
    format!("The clock is {behind:?} behind, and flake.max_clock_wait is {max_clock_wait:?}.")
}

fn right_again(until: i64) -> String {
    format!(
        "IDs can be made again once the clock has reached {}; check its synchronization. If it is right now and was ahead before, \
         see flake_check().",
        time(until)
    )
}
