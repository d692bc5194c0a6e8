//! flake_take: the next rows of a table, and the position of a consumer, which moves over them.
//!
//! Everything is done by queries of the caller's. Each has a newer snapshot than the locks before it, so it sees the position
//! that it waited for, and no table as it was before it was rewritten; horizon and rows are of one snapshot.
#![allow(unsafe_code, reason = "a function of any type, with rows as PostgreSQL has them")]

mod key;
mod partitions;
mod texts;

use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{AnyElement, IntoDatum};

use self::partitions::Partitions;
use self::texts::Texts;
use crate::error::{Error, raise};
use crate::postgres::call::Call;
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::queries::{Queries, Row};
use crate::postgres::result_set::ResultSet;
use crate::postgres::{extension, local_settings, recovery, relation, transaction};

/// Rows are read by the index of the key. A plan that is kept could be of a time when the table was empty. Where a child has no such
/// index, its plan costs so much that PostgreSQL would compile it.
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
    // Horizons are returned there, but no position can be moved.
    recovery::refuse(c"flake_take()");
    if transaction::has_one_snapshot() {
        raise(Error::TakeByOldSnapshot);
    }
    // SAFETY: it looks at the node of the running call.
    let row = unsafe { pg_sys::get_fn_expr_argtype((*call).flinfo, 0) };
    let Some(table) = relation::of_row_type(row) else { raise(Error::NoTable) };
    relation::lock_to_read(table);
    if !relation::is_table(table) {
        raise(Error::NoTable);
    }
    if relation::hides_rows(table) {
        raise(Error::RowSecurity { table: shown(table) });
    }
    // SAFETY: it is declared to return a set of what its first argument is.
    let Some(mut set) = (unsafe { ResultSet::begin(Call::new(call), row) }) else { raise(Error::NoSetExpected) };
    if !set.is_as_planned {
        raise(Error::OtherColumns { table: shown(table) });
    }
    let no_position = || -> ! {
        let consumer = to_utf8_lossy(consumer.get(..SHOWN).unwrap_or(consumer)).into_owned();
        raise(Error::NoPosition { consumer, table: shown(table), positions: shown(positions) })
    };
    Queries::run(|queries| {
        let changes = relation::changes();
        let flake = extension::find(c"flake");
        let found = flake.and_then(|flake| Some((flake.schema, key::find(queries, flake, table)?)));
        let Some((schema, key)) = found else { raise(Error::NoKey { table: shown(table) }) };
        let kind_of = |column| relation::type_of_column(positions, relation::column(positions, column));
        let refuse_type = |column| -> ! {
            raise(Error::PositionType { column, positions: shown(positions), is_sno: key.layout.is_none() })
        };
        if kind_of(c"last") != key.kind {
            refuse_type("last");
        }
        if ![pg_sys::REGCLASSOID, pg_sys::OIDOID].contains(&kind_of(c"source")) {
            refuse_type("source");
        }
        let Some(texts) = Texts::new(schema, &key, table, positions) else { no_position() };
        let of = [(pg_sys::TEXTOID, datum(consumer)), (pg_sys::REGCLASSOID, datum(table))];

        // Who finds nothing locks nothing, and so needs no transaction ID.
        let (found, _) = local_settings::with(&BY_INDEX, || queries.execute::<2>(&texts.look, &of));
        let Some([is_ahead, is_any]) = found.first() else { no_position() };
        if is_true(*is_ahead) {
            raise(Error::PositionAhead { table: shown(table) });
        }
        if !is_true(*is_any) {
            return;
        }
        if queries.execute::<0>(&texts.lock, &of).1 == 0 {
            no_position();
        }
        let mut last = None;
        let mut add = |rows: &[Row<2>], types: [pg_sys::Oid; 2]| {
            // The names could be those of other relations by now, in a schema that was renamed.
            if types != [row, key.kind] {
                raise(Error::NoTable);
            }
            for [row, _] in rows {
                // SAFETY: as the types say.
                row.iter().for_each(|row| unsafe { set.push(*row) });
            }
            last = rows.last().and_then(|[_, id]| *id).map(|id| queries.keep(key.kind, id));
        };
        let up_to = [of[0], of[1], (pg_sys::INT4OID, datum(max_rows))];
        let mut partitions = Partitions::of(table);
        local_settings::with(&BY_INDEX, || {
            while !queries.for_each(&texts.rows, &up_to, |planned| partitions.are_in(queries, planned), &mut add) {}
        });
        // It may be one of another layout. The relations that were read are locked by now.
        if relation::changes() != changes
            && flake.and_then(|flake| key::find(queries, flake, table)).as_ref() != Some(&key)
        {
            raise(Error::NoKey { table: shown(table) });
        }
        let is_moved = |id| queries.execute::<0>(&texts.go_on, &[of[0], of[1], (key.kind, id)]).1 == 1;
        if !last.is_none_or(is_moved) {
            raise(Error::NotMoved { positions: shown(positions) });
        }
    });
}

fn given<T>(argument: Option<T>, name: &'static str) -> T {
    let why = "Only the row is NULL, as in NULL::outbox, whose type says of which table rows are taken.";
    argument.unwrap_or_else(|| raise(Error::NullArgument { name, why }))
}

fn datum(value: impl IntoDatum) -> pg_sys::Datum {
    value.into_datum().unwrap_or(pg_sys::Datum::null())
}

fn is_true(value: Option<pg_sys::Datum>) -> bool {
    value.is_some_and(|value| value.value() & 0xff != 0)
}

/// The name of a relation in an error.
fn shown(relation: pg_sys::Oid) -> String {
    to_utf8_lossy(&relation::quoted_name(relation).unwrap_or_else(|| relation.to_u32().to_string().into_bytes()))
        .into_owned()
}

c_symbol!(flake_take);
