//! The reasons why a table cannot be converted.

use flake_core::Remedy;

#[derive(Debug)]
pub enum Obstacle {
    /// It is something else than a table of its own.
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
