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

use self::key::Key;
use self::partitions::Partitions;
use self::texts::Texts;
use crate::error::{Error, raise};
use crate::postgres::call::Call;
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::extension::Extension;
use crate::postgres::queries::{Parameter, Queries, Row};
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
    let table = table_of(row);
    // SAFETY: it is declared to return a set of what its first argument is.
    let Some(mut set) = (unsafe { ResultSet::begin(Call::new(call), row) }) else { raise(Error::NoSetExpected) };
    if !set.is_as_planned {
        raise(Error::OtherColumns { table: shown(table) });
    }
    Queries::run(|queries| {
        let changes = relation::changes();
        let flake = extension::find(c"flake");
        let found = flake.and_then(|flake| Some((flake, key::find(queries, flake, table)?)));
        let Some((flake, key)) = found else { raise(Error::NoKey { table: shown(table) }) };
        let take = Take { queries, flake, table, row, key, positions, consumer };
        take.check_positions();
        let texts = Texts::new(flake.schema, &take.key, table, positions).unwrap_or_else(|| take.refuse_position());
        // Where there is nothing to take, nothing is locked, so no transaction ID is needed.
        if !take.look(&texts) {
            return;
        }
        take.lock(&texts);
        let last = take.read(&texts, max_rows, &mut set);
        take.check_key(changes);
        if let Some(last) = last {
            take.advance(&texts, last);
        }
    });
}

/// The table whose rows are of a type, which is locked.
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

/// One call. Its steps are in the order in which it takes them.
struct Take<'a> {
    queries: &'a Queries,
    flake: Extension,
    table: pg_sys::Oid,
    /// The type of its rows.
    row: pg_sys::Oid,
    key: Key,
    positions: pg_sys::Oid,
    consumer: &'a [u8],
}

impl Take<'_> {
    /// The parameters that all queries have first.
    fn of(&self) -> [Parameter; 2] {
        [(pg_sys::TEXTOID, datum(self.consumer)), (pg_sys::REGCLASSOID, datum(self.table))]
    }

    /// Checks the columns of the table of positions.
    fn check_positions(&self) {
        let kind_of = |column| {
            relation::base_type(relation::type_of_column(self.positions, relation::column(self.positions, column)))
        };
        let fits = [
            ("last", kind_of(c"last") == self.key.kind),
            ("source", [pg_sys::REGCLASSOID, pg_sys::OIDOID].contains(&kind_of(c"source"))),
        ];
        if let Some(&(column, _)) = fits.iter().find(|(_, fits)| !fits) {
            let is_sno = self.key.layout.is_none();
            raise(Error::PositionType { column, positions: shown(self.positions), is_sno })
        }
    }

    fn refuse_position(&self) -> ! {
        let consumer = self.consumer.get(..SHOWN).unwrap_or(self.consumer);
        let (table, positions) = (shown(self.table), shown(self.positions));
        raise(Error::NoPosition { consumer: to_utf8_lossy(consumer).into_owned(), table, positions })
    }

    /// Returns whether there is a row to take.
    fn look(&self, texts: &Texts) -> bool {
        let (found, _) = local_settings::with(&BY_INDEX, || self.queries.execute::<2>(&texts.look, &self.of()));
        let Some([is_ahead, is_any]) = found.first() else { self.refuse_position() };
        if is_true(*is_ahead) {
            raise(Error::PositionAhead { table: shown(self.table) });
        }
        is_true(*is_any)
    }

    /// Waits for the consumer's turn.
    fn lock(&self, texts: &Texts) {
        if self.queries.execute::<0>(&texts.lock, &self.of()).1 == 0 {
            self.refuse_position();
        }
    }

    /// Reads rows; returns the key of the last one.
    fn read(&self, texts: &Texts, max_rows: i32, set: &mut ResultSet) -> Option<pg_sys::Datum> {
        let mut last = None;
        let mut add = |rows: &[Row<2>], types: [pg_sys::Oid; 2]| {
            // Other relations could have these names by now, in a schema that was renamed.
            if types != [self.row, self.key.kind] {
                raise(Error::NoTable);
            }
            for [row, _] in rows {
                // SAFETY: as the types say.
                row.iter().for_each(|row| unsafe { set.push(*row) });
            }
            last = rows.last().and_then(|[_, id]| *id).map(|id| self.queries.keep(self.key.kind, id));
        };
        let [consumer, source] = self.of();
        let up_to = [consumer, source, (pg_sys::INT4OID, datum(max_rows))];
        let mut partitions = Partitions::of(self.table);
        local_settings::with(&BY_INDEX, || {
            while !self.queries.for_each(
                &texts.rows,
                &up_to,
                |planned| partitions.are_in(self.queries, planned),
                &mut add,
            ) {}
        });
        last
    }

    /// Checks that the key, which was read before the relations were locked, is still the same: it may be one of another layout.
    fn check_key(&self, changes: u64) {
        if relation::changes() != changes && key::find(self.queries, self.flake, self.table).as_ref() != Some(&self.key)
        {
            raise(Error::NoKey { table: shown(self.table) });
        }
    }

    /// Moves the position.
    fn advance(&self, texts: &Texts, last: pg_sys::Datum) {
        let [consumer, source] = self.of();
        if self.queries.execute::<0>(&texts.advance, &[consumer, source, (self.key.kind, last)]).1 != 1 {
            raise(Error::NotMoved { positions: shown(self.positions) });
        }
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

/// The name of a relation in an error.
fn shown(relation: pg_sys::Oid) -> String {
    to_utf8_lossy(&relation::quoted_name(relation).unwrap_or_else(|| relation.to_u32().to_string().into_bytes()))
        .into_owned()
}

c_symbol!(flake_take);
