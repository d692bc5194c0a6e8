//! The extension's errors: those of the core, and those that only a database can have.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use flake_core::horizon::host::Refusal;
use flake_core::ledger::host::Fault;

use super::obstacle::Obstacle;

type Name = Cow<'static, str>;

/// An error of the extension. The texts are primary messages; table.rs has the rest.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Core(#[from] flake_core::Error),
    #[error(transparent)]
    Horizon(#[from] Refusal),
    #[error(transparent)]
    Mark(#[from] Fault),

    // Making IDs.
    #[error("count must not be negative")]
    BadCount { count: i32 },
    #[error("cannot make IDs of layout \"{layout}\"")]
    ReadOnly { layout: Name },
    #[error("cannot make IDs in a parallel worker")]
    InWorker,
    /// The clock is behind the last ID, until this instant. `behind` includes the time waited already.
    #[error("clock is behind the last ID of layout \"{layout}\"")]
    ClockBehind { layout: Name, behind: Duration, until: i64, max_clock_wait: Duration },
    /// The clock is behind a horizon, up to which nobody makes IDs any more.
    #[error("clock is behind a horizon that was returned")]
    ClockBehindHorizon { behind: Duration, until: i64, max_clock_wait: Duration },
    /// The session has no IDs before this instant, when the next tick begins.
    #[error("next tick of layout \"{layout}\" is too far away")]
    LongTick { layout: Name, left: Duration, until: i64, max_clock_wait: Duration },

    // Configuration.
    #[error("could not find shared memory for IDs: {reason}")]
    NoControlBlock { reason: String },
    /// The server's own settings are not known here, whether or not a background worker has run to read them.
    #[error("number of this node is not known")]
    NodeUnknown { has_run: bool },
    /// Nor is anything in force that would replace them, and a session that only reads runs no background worker.
    #[error("number of nodes is not known before the first ID")]
    NodeNotInForce,
    /// Another version of the library, which computes shares in another way, serves this server start.
    #[error("another version of the flake library is in use")]
    OtherShareRule { found: u32, own: u32 },
    /// A session cannot change what another version of the library keeps in memory.
    #[error("another version of the flake library is in use")]
    OtherVersion { found: u32 },
    #[error("ID is too far ahead of the clock")]
    TooFarAhead { by: Duration, until: i64 },

    // Horizons.
    #[error("no horizon is known for this snapshot")]
    NothingPublished,
    #[error("cannot ask for a horizon in a parallel worker")]
    HorizonInWorker,
    #[error("there is no snapshot of a query to ask for its horizon")]
    NoQuerySnapshot,
    #[error("could not find shared memory for this session: {reason}")]
    NoSlotMemory { reason: String },
    /// A horizon up to this instant may have been returned.
    #[error("ID may be below a horizon")]
    BelowHorizon { id: String, announced: i64 },
    /// By the layout that was named; the one that made it is another.
    #[error("ID is too far ahead of the clock")]
    CoverAhead { id: String, by: Duration },
    #[error("cannot cover an ID in a parallel worker")]
    CoverInWorker,

    // Taking rows.
    #[error("argument \"{name}\" must not be null")]
    NullArgument { name: &'static str, why: &'static str },
    #[error("number of rows must be positive")]
    BadMost { most: i32 },
    #[error("function that returns a set of rows was called where no set is expected")]
    NoSetExpected,
    #[error("cannot take rows in a transaction with one snapshot")]
    TakeByOldSnapshot,
    #[error("rows can be taken from tables only")]
    NoTable,
    #[error("row security of table {table} applies to the present role")]
    RowSecurity { table: String },
    #[error("columns of table {table} have changed while the call waited")]
    OtherColumns { table: String },
    #[error("table {table} has no key to take its rows by")]
    NoKey { table: String },
    #[error("column \"{column}\" of positions in {positions} is missing, or has the wrong type")]
    PositionType { column: &'static str, positions: String, is_sno: bool },
    #[error("consumer \"{consumer}\" has no position for table {table} in {positions}")]
    NoPosition { consumer: String, table: String, positions: String },
    #[error("position in table {table} is ahead of the clock")]
    PositionAhead { table: String },
    #[error("position in {positions} was not moved")]
    NotMoved { positions: String },

    // Privileges.
    #[error("must be superuser to call {function}")]
    NotSuperuser { function: &'static str },
    #[error("must be owner of extension flake to call {function}")]
    NotOwner { function: &'static str, owner: String },
    #[error("permission denied for {what}")]
    NotMonitor { what: &'static str },

    // IDs from their parts.
    #[error("fields must be a JSON object")]
    FieldsNotAnObject,
    #[error("invalid value for field \"{field}\" of layout \"{layout}\": {value}")]
    BadNumber { layout: Name, field: String, value: String, is_number: bool },
    #[error("uuid does not contain a sno")]
    SnoUuid,

    // Custom layouts.
    #[error("layout \"{layout}\" already exists")]
    NameTaken { layout: Name, is_built_in: bool },
    #[error("cannot drop layout \"{layout}\" because it is built in")]
    DropBuiltIn { layout: Name },
    #[error("cannot drop layout \"{layout}\" because other objects name it")]
    InUse { layout: Name, uses: BTreeSet<String> },
    #[error("layout \"{layout}\" is not the built-in one")]
    InsteadOfBuiltIn { layout: Name },
    #[error("definition of layout \"{layout}\" has been changed")]
    Altered { layout: Name },
    #[error("a layout must have the option \"definition\" and no other")]
    NotALayout,

    // Public IDs.
    #[error("key \"{key}\" does not exist")]
    UnknownKey { key: String },
    #[error("permission denied for key \"{key}\"")]
    NoUsage { key: String },
    /// With the fingerprint of the secret that is there.
    #[error("secret of key \"{key}\" is missing or has been changed")]
    NoSecret { key: String, fingerprint: String, found: Option<String> },
    #[error("options of key \"{key}\" have been changed")]
    UnreadableKey { key: String },
    #[error("invalid public ID of key \"{key}\": \"{text}\"")]
    NotSealed { text: String, key: String },
    #[error("invalid name for a key: \"{key}\"")]
    KeyName { key: String },
    #[error("key \"{key}\" already exists")]
    KeyTaken { key: String },
    #[error("secret belongs to key \"{key}\" already")]
    SecretTaken { key: String },
    #[error("secret of a key must have 16 bytes, not {length}")]
    SecretLength { length: usize },
    #[error("key \"{key}\" cannot have another secret from ID {from} on")]
    RotatedBelow { key: String, from: i64, last: i64 },
    #[error("key \"{key}\" has had too many rotations")]
    TooManyRotations { key: String },
    #[error("cannot drop key \"{key}\" because other objects name it")]
    KeyInUse { key: String, uses: BTreeSet<String> },
    #[error("options are not those of a key")]
    NotAKey,

    // Converting tables.
    #[error("cannot convert table {table}")]
    NotConvertible { table: String, why: Obstacle },

    /// Somebody has altered a type of the extension.
    #[error("type {name} has been altered")]
    RowType { name: &'static str },

    // The mark.
    #[error("could not {operation} file \"flake.mark\": {reason}")]
    MarkFile { operation: &'static str, reason: String, kind: std::io::ErrorKind },
    #[error("sequence \"flake_mark\" of extension \"flake\" does not exist")]
    NoMarkSequence,
    #[error("sequence \"flake_mark\" of extension \"flake\" is not logged")]
    MarkNotLogged,
}
