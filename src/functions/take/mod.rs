//! flake_take: returns the next rows of a table, and moves a consumer's position over them.
//!
//! All steps are queries of the caller. Each query takes its snapshot after the locks of the step before. So it sees the position
//! that it has waited for, it never sees a table as it was before a rewrite, and the horizon and the rows come from one snapshot.
#![allow(unsafe_code, reason = "a function of any type, with rows as PostgreSQL has them")]

mod key;
mod partitions;
mod statements;

use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{AnyElement, IntoDatum};

use self::key::Key;
use self::partitions::Partitions;
use self::statements::Statements;
use crate::error::{Error, raise};
use crate::postgres::call::Call;
use crate::postgres::encoding::to_utf8_lossy;
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
        raise(Error::BadMost { most: max_rows });
    }
    // A standby returns horizons, but cannot move a position.
    recovery::refuse(c"flake_take()");
    if transaction::has_one_snapshot() {
        raise(Error::TakeByOldSnapshot);
    }
    // SAFETY: this only reads the node of the running call.
    let row = unsafe { pg_sys::get_fn_expr_argtype((*call).flinfo, 0) };
    let table = table_of(row);
    // SAFETY: the function is declared to return a set of its first argument's type.
    let Some(mut set) = (unsafe { ResultSet::begin(Call::new(call), row) }) else { raise(Error::NoSetExpected) };
    if !set.is_as_planned {
        raise(Error::OtherColumns { table: shown(table) });
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
    let Some((flake, key)) = found else { raise(Error::NoKey { table: shown(table) }) };
    check_positions(positions, &key);
    let refuse = || {
        let consumer = to_utf8_lossy(consumer.get(..SHOWN).unwrap_or(consumer)).into_owned();
        raise(Error::NoPosition { consumer, table: shown(table), positions: shown(positions) })
    };
    let Some(statements) = Statements::new(flake.schema, &key, table, positions) else { refuse() };
    let of = [(pg_sys::TEXTOID, datum(consumer)), (pg_sys::REGCLASSOID, datum(table))];
    let with = |parameter: Parameter| [of[0], of[1], parameter];

    // If there is no row to take, nothing is locked, so the transaction needs no ID.
    let (found, _) = local_settings::with(&BY_INDEX, || queries.execute::<2>(&statements.look, &of));
    let Some(&[is_ahead, is_any]) = found.first() else { refuse() };
    if is_true(is_ahead) {
        raise(Error::PositionAhead { table: shown(table) });
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
            raise(Error::NoTable);
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
        raise(Error::NoKey { table: shown(table) });
    }
    if let Some(last) = last
        && queries.execute::<0>(&statements.advance, &with((key.kind, last))).1 != 1
    {
        raise(Error::NotMoved { positions: shown(positions) });
    }
}

/// Returns the table with this row type, and locks it.
fn table_of(row: pg_sys::Oid) -> pg_sys::Oid {
    let Some(table) = relation::of_row_type(row) else { raise(Error::NoTable) };
    relation::lock_to_read(table);
    if !relation::is_table(table) {
        raise(Error::NoTable);
    }
    if relation::hides_rows(table) {
        raise(Error::RowSecurity { table: shown(table) });
    }
    table
}

/// Checks the columns of the table of positions.
fn check_positions(positions: pg_sys::Oid, key: &Key) {
    let kind_of =
        |column| relation::base_type(relation::type_of_column(positions, relation::column(positions, column)));
    let fits = [
        ("last", kind_of(c"last") == key.kind),
        ("source", [pg_sys::REGCLASSOID, pg_sys::OIDOID].contains(&kind_of(c"source"))),
    ];
    if let Some(&(column, _)) = fits.iter().find(|(_, fits)| !fits) {
        raise(Error::PositionType { column, positions: shown(positions), is_sno: key.layout.is_none() })
    }
}

fn given<T>(argument: Option<T>, name: &'static str) -> T {
    let why = "Only the first argument can be NULL, such as NULL::outbox, whose type tells the table.";
    argument.unwrap_or_else(|| raise(Error::NullArgument { name, why }))
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
