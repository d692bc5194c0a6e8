//! The reasons why a table cannot be converted, each with its SQLSTATE, DETAIL and HINT.

use flake_core::Remedy;
use pgrx::PgSqlErrorCode::*;

use super::row::{Row, listed};

const WIDEN: &str = "First widen the key and all columns that refer to it, for example by examples/widen.sql.";

#[derive(Debug)]
pub enum Obstacle {
    /// The relation is not a table, or is a part of another one.
    Kind {
        is: &'static str,
    },
    Owner,
    NoTimeout,
    Isolation,
    NoKey,
    /// The key has several columns.
    Columns {
        names: Vec<String>,
    },
    /// `is_narrow` is whether it could be widened.
    Type {
        column: String,
        of: String,
        is_narrow: bool,
    },
    /// Columns that refer to the key.
    Narrow {
        columns: Vec<String>,
    },
    Converted {
        column: String,
    },
    /// A constraint of the key, or of its domain, does not hold for the next ID.
    Check {
        name: String,
        expression: String,
        first: i64,
    },
    NoIndex {
        tables: Vec<String>,
    },
    OtherDefault {
        tables: Vec<String>,
    },
    Tag {
        layout: String,
    },
    Unordered {
        layout: String,
    },
    /// The next ID would not be above the greatest key.
    Above {
        layout: String,
        greatest: i64,
        first: i64,
        remedy: Remedy,
    },
}

impl Obstacle {
    #[rustfmt::skip]
    pub fn row(&self) -> Row {
        use Obstacle::*;
        match self {
            Kind { is } => Row::new(ERRCODE_WRONG_OBJECT_TYPE,
                *is,
                "flake_convert converts tables, and all partitions with the table that they belong to."),
            Owner => Row::new(ERRCODE_INSUFFICIENT_PRIVILEGE,
                "flake_convert alters the table as the calling role, which does not own it.",
                "Call flake_convert as the owner of the table."),
            NoTimeout => Row::new(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "While flake_convert waits for its lock, every other use of the table waits too, and lock_timeout is 0, which sets no limit.",
                "Run SET LOCAL lock_timeout = '2s' before, in the same transaction."),
            Isolation => Row::new(ERRCODE_INVALID_TRANSACTION_STATE,
                "A transaction of this isolation level does not see keys that were committed after it began.",
                "Use READ COMMITTED."),
            NoKey => Row::new(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "It has no primary key, by whose index the greatest ID could be found.",
                "Add a primary key, for example with ALTER TABLE … ADD PRIMARY KEY USING INDEX."),
            Columns { names } => Row::new(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("Its primary key has several columns: {}.", names.join(", ")),
                "Change the default of one of them by ALTER TABLE; see docs/how-to/convert.md."),
            Type { column, of, is_narrow } => Row::new(ERRCODE_DATATYPE_MISMATCH,
                format!("Its key {column} is of type {of}; IDs are of type bigint."),
                if *is_narrow { WIDEN } else { "Such keys cannot be compared with IDs." }),
            Narrow { columns } => Row::new(ERRCODE_DATATYPE_MISMATCH,
                format!("Columns that refer to its key are too small for IDs: {}.", columns.join(", ")),
                WIDEN),
            Converted { column } => Row::new(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("The default of its key {column} calls flake already."),
                "To change to another layout, run ALTER TABLE … ALTER COLUMN … DROP DEFAULT first, and convert again."),
            Check { name, expression, first } => Row::new(ERRCODE_CHECK_VIOLATION,
                format!("Its constraint \"{name}\" refuses the next ID, {first}: CHECK {expression}."),
                "Drop or change the constraint first, or use a layout whose IDs it allows."),
            NoIndex { tables } => Row::new(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("No index on the key finds the greatest ID in: {}.", listed(tables.iter(), "others")),
                "Create a B-tree index there that begins with the key."),
            OtherDefault { tables } => Row::new(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("The key has another default in: {}.", listed(tables.iter(), "others")),
                "ALTER TABLE … SET DEFAULT gives all of them the same one, which \"undo\" can bring back."),
            Tag { layout } => Row::new(ERRCODE_INVALID_PARAMETER_VALUE,
                format!("Layout \"{layout}\" has a tag field, which needs a number from you."),
                "Set the default flake_next(layout, tag) by ALTER TABLE."),
            Unordered { layout } => Row::new(ERRCODE_INVALID_PARAMETER_VALUE,
                format!("IDs of layout \"{layout}\" are not in the order of time, so new IDs can be equal to keys of the table."),
                "Use a layout that has a time in the column \"sortable_until\" of the view flake_layouts."),
            Above { layout, greatest, first, remedy } => Row::new(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("Its greatest ID is {greatest}, and the next ID of layout \"{layout}\" would be {first}."),
                match remedy {
                    Remedy::StartAbove => format!("A superuser can run SELECT flake_start_above({greatest}, '{layout}') first."),
                    Remedy::Layouts(names) => format!("IDs of these layouts are above it: {}.", names.join(", ")),
                    Remedy::EarlierEpoch => "IDs of a custom layout with an earlier epoch can be above it.".to_owned(),
                    Remedy::NoRoom => "Too few numbers are left above it. Give the rows IDs by their time, as docs/how-to/convert.md \
                                       does.".to_owned(),
                }),
        }
    }
}
