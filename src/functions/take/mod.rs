//! flake_take: returns the next rows of a table, and moves a consumer's position over them.
//!
//! All steps are queries of the caller. Each query takes its snapshot after the locks of the step before. So it sees the position
//! that it has waited for, it never sees a table as it was before a rewrite, and the watermark and the rows come from one snapshot.
#![allow(unsafe_code, reason = "a function of any type, with rows as PostgreSQL has them")]

mod key;
mod partitions;
mod statements;

use std::ffi::CStr;

use pgrx::PgSqlErrorCode::*;
use pgrx::prelude::*;
use pgrx::{AnyElement, IntoDatum};

use self::key::Key;
use self::partitions::Partitions;
use self::statements::Statements;
use super::null_argument;
use crate::error::Error;
use crate::postgres::call::Call;
use crate::postgres::encoding::{shortened, to_utf8_lossy};
use crate::postgres::entry_point::c_symbol;
use crate::postgres::queries::{Parameter, Queries, Row};
use crate::postgres::result_set::ResultSet;
use crate::postgres::{extension, local_settings, recovery, relation, transaction};

/// Settings that make the query read by the index of the key. A kept plan could come from a time when the table was empty. A child
/// without such an index makes the plan so expensive that PostgreSQL would compile it.
const BY_INDEX: [(&CStr, &CStr); 3] = [(c"enable_seqscan", c"off"), (c"enable_bitmapscan", c"off"), (c"jit", c"off")];

/// How much of a consumer's name an error shows, in bytes.
const SHOWN: usize = 100;

#[pg_extern(sql = "")]
fn flake_take(
    _row: Option<AnyElement>,
    positions: Option<pg_sys::Oid>,
    consumer: Option<&[u8]>,
    max_rows: Option<i32>,
    call: pg_sys::FunctionCallInfo,
) {
    let (positions, consumer, max_rows) =
        (given(positions, "positions"), given(consumer, "consumer"), given(max_rows, "max_rows"));
    if max_rows < 1 {
        let detail = format!("It is {max_rows}; the valid range is 1 to {}.", i32::MAX);
        Error::invalid("number of rows must be positive").detail(detail).raise();
    }
    // A standby returns watermarks, but cannot move a position.
    recovery::refuse(c"flake_take()");
    recovery::forbid_if_read_only(c"flake_take()");
    if transaction::has_one_snapshot() {
        let detail = "In REPEATABLE READ and SERIALIZABLE, the snapshot can be older than the consumer's position, or than the \
                      rows of the table.";
        let message = "flake_take requires READ COMMITTED";
        Error::of(ERRCODE_INVALID_TRANSACTION_STATE, message)
            .detail(detail)
            .hint("Take rows in READ COMMITTED.")
            .raise();
    }
    // SAFETY: this only reads the node of the running call.
    let row = unsafe { pg_sys::get_fn_expr_argtype((*call).flinfo, 0) };
    let table = table_of(row);
    // SAFETY: the function is declared to return a set of its first argument's type.
    let Some(mut set) = (unsafe { ResultSet::begin(Call::new(call), row) }) else {
        let message = "function that returns a set of rows was called where no set is expected";
        Error::of(ERRCODE_FEATURE_NOT_SUPPORTED, message)
            .detail("It returns any number of rows.")
            .hint("Call it in FROM.")
            .raise()
    };
    if !set.is_as_planned {
        let message = format!("columns of table {} have changed while the call waited", shown(table));
        Error::of(ERRCODE_T_R_SERIALIZATION_FAILURE, message)
            .detail("The query has the columns from when it began.")
            .hint("Call again, in a new transaction.")
            .raise();
    }
    Queries::run(|queries| take(queries, table, row, positions, consumer, max_rows, &mut set));
}

fn take(
    queries: &Queries,
    table: pg_sys::Oid,
    row: pg_sys::Oid,
    positions: pg_sys::Oid,
    consumer: &[u8],
    max_rows: i32,
    set: &mut ResultSet,
) {
    let changes = relation::changes();
    let flake = extension::find(c"flake");
    let found = flake.and_then(|flake| Some((flake, key::find(queries, flake, table)?)));
    let Some((flake, key)) = found else { refuse_key(table) };
    check_positions(positions, &key);
    let refuse = || {
        let consumer = shortened(consumer, SHOWN);
        let (table, positions) = (shown(table), shown(positions));
        let message = format!("consumer \"{consumer}\" has no position for table {table} in {positions}");
        Error::of(ERRCODE_UNDEFINED_OBJECT, message)
            .detail("A position is a row with the name of the consumer, and with the table as its source.")
            .hint("For one that begins with the first row: INSERT INTO positions VALUES ('mailer', 'outbox').")
            .raise()
    };
    let Some(statements) = Statements::new(flake.schema, &key, table, positions) else { refuse() };
    let of = [(pg_sys::TEXTOID, datum(consumer)), (pg_sys::REGCLASSOID, datum(table))];
    let with = |parameter: Parameter| [of[0], of[1], parameter];

    // A call that finds no row to take locks nothing, so it must not give the transaction an ID.
    let (found, _) = local_settings::with(&BY_INDEX, || queries.execute::<2>(&statements.look, &of));
    let Some(&[is_ahead, is_any]) = found.first() else { refuse() };
    if found.len() > 1 {
        refuse_positions(positions);
    }
    if is_true(is_ahead) {
        Error::not_ready(format!("position in table {} is ahead of the clock", shown(table)))
            .detail(
                "Rows below it may still appear, and would never be taken. The position is from another server or \
                 another layout, or flake_accept_clock allows IDs below it.",
            )
            .hint(
                "Set the position to the last row that the consumer has taken, or to the smallest ID of the time \
                 that flake_accept_clock has returned.",
            )
            .raise();
    }
    if !is_true(is_any) {
        return;
    }
    if queries.execute::<0>(&statements.lock, &of).1 == 0 {
        refuse();
    }
    let mut last = None;
    let mut add = |rows: &[Row<2>], types: [pg_sys::Oid; 2]| {
        // After a schema was renamed, other relations could have these names.
        if types != [row, key.kind] {
            refuse_table();
        }
        for [row, _] in rows {
            // SAFETY: the values have these types.
            row.iter().for_each(|row| unsafe { set.push(*row) });
        }
        last = rows.last().and_then(|[_, id]| *id).map(|id| queries.keep(key.kind, id));
    };
    let (mut partitions, up_to) = (Partitions::of(table), with((pg_sys::INT4OID, datum(max_rows))));
    let mut read =
        || queries.for_each(&statements.rows, &up_to, |planned| partitions.are_in(queries, planned), &mut add);
    local_settings::with(&BY_INDEX, || while !read() {});
    // The key was read before the relations were locked. It could now be the key of another layout.
    if relation::changes() != changes && key::find(queries, flake, table).as_ref() != Some(&key) {
        refuse_key(table);
    }
    if let Some(last) = last
        && queries.execute::<0>(&statements.advance, &with((key.kind, last))).1 != 1
    {
        refuse_positions(positions);
    }
}

/// Returns the table with this row type, and locks it.
fn table_of(row: pg_sys::Oid) -> pg_sys::Oid {
    let Some(table) = relation::of_row_type(row) else { refuse_table() };
    relation::lock_to_read(table);
    if !relation::is_table(table) {
        refuse_table();
    }
    if relation::hides_rows(table) {
        let message = format!("row security of table {} applies to the current role", shown(table));
        Error::of(ERRCODE_INSUFFICIENT_PRIVILEGE, message)
            .detail("The position would move over rows that the policies hide.")
            .hint("Take rows as a role that the policies do not apply to, such as one with BYPASSRLS.")
            .raise();
    }
    table
}

/// Checks the columns of the table of positions, and the privilege to move one.
fn check_positions(positions: pg_sys::Oid, key: &Key) {
    let kind_of =
        |column| relation::base_type(relation::type_of_column(positions, relation::column(positions, column)));
    let fits = [
        ("last", kind_of(c"last") == key.kind),
        ("source", [pg_sys::REGCLASSOID, pg_sys::OIDOID].contains(&kind_of(c"source"))),
    ];
    if let Some(&(column, _)) = fits.iter().find(|(_, fits)| !fits) {
        let positions = shown(positions);
        let message = format!("column \"{column}\" of positions in {positions} is missing, or has the wrong type");
        Error::of(ERRCODE_DATATYPE_MISMATCH, message)
            .detail("The position of a consumer is the key of a row of the table that is its source.")
            .hint(format!(
                "CREATE TABLE positions (name text, source regclass, last {}, PRIMARY KEY (name, source)).",
                if key.layout.is_some() { "bigint" } else { "sno" }
            ))
            .raise()
    }
    // Otherwise a consumer without the privilege on the table would seem to have nothing to read until there is a row.
    relation::require_update(positions, relation::column(positions, c"last"));
}

fn refuse_positions(positions: pg_sys::Oid) -> ! {
    Error::not_ready(format!("position in {} was not moved", shown(positions)))
        .detail(
            "A trigger, a rule or a policy prevented the update, or several rows have this name and source. The \
             consumer would take the rows twice.",
        )
        .hint("Create a table with PRIMARY KEY (name, source).")
        .raise()
}

fn refuse_table() -> ! {
    Error::of(ERRCODE_WRONG_OBJECT_TYPE, "rows can be taken from tables only")
        .detail(
            "The first argument is NULL, cast to the row type of a table. Views and foreign tables are not \
             supported.",
        )
        .hint("For example: SELECT * FROM flake_take(NULL::outbox, 'positions', 'mailer', 100).")
        .raise()
}

fn refuse_key(table: pg_sys::Oid) -> ! {
    Error::not_ready(format!("table {} has no key to take its rows by", shown(table)))
        .detail(
            "The key is a column of type bigint or sno. Its default is flake_next with the name of a layout, or \
             sno_next, and an index of all rows begins with it. Partitions, children and parents of the table must \
             not make IDs of another layout.",
        )
        .hint("Give exactly one column such a default, and make it the primary key.")
        .raise()
}

fn given<T>(argument: Option<T>, name: &str) -> T {
    let why = "Only the first argument can be NULL, such as NULL::outbox, whose type tells the table.";
    argument.unwrap_or_else(|| null_argument(name, why).raise())
}

fn datum(value: impl IntoDatum) -> pg_sys::Datum {
    value.into_datum().unwrap_or(pg_sys::Datum::null())
}

fn is_true(value: Option<pg_sys::Datum>) -> bool {
    value.is_some_and(|value| value.value() & 0xff != 0)
}

/// Returns the name of a relation for an error message.
fn shown(relation: pg_sys::Oid) -> String {
    to_utf8_lossy(&relation::quoted_name(relation).unwrap_or_else(|| relation.to_u32().to_string().into_bytes()))
        .into_owned()
}

c_symbol!(flake_take);
