//! flake_adopt_schema: adopts the key of each table of a schema, in a transaction of its own.
//!
//! A column that cannot be adopted keeps its numbers, and calls them through flake_sequences.nextval as well. So once that schema stands
//! in a search_path, PostgreSQL prints all such defaults alike, and tools that compare defaults find no difference.
#![allow(unsafe_code, reason = "an entry point, and a row")]

use std::str::FromStr;

use pgrx::PgSqlErrorCode::ERRCODE_INVALID_TRANSACTION_TERMINATION;
use pgrx::prelude::*;

use super::{adopt, adoptable, own_schema, patience, persistently};
use crate::error::{Error, OrRaise, altered_type};
use crate::functions::null_argument;
use crate::functions::statements::{Texts, rows, run};
use crate::postgres::call::Text;
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::entry_point::entry_point;
use crate::postgres::guard::guarded;
use crate::postgres::memory::push;
use crate::postgres::procedure::Procedure;
use crate::postgres::recovery;
use crate::postgres::report::notice;
use crate::postgres::rows::row;
use crate::postgres::transaction::unless_locked;

entry_point!(flake_adopt_schema(schema: pg_sys::Oid, layout: Text<'_>), |call| {
    // SAFETY: nothing is borrowed that an error could leave borrowed.
    unsafe {
        guarded(|| {
            if let Some(number @ 0..=1) = call.first_null() {
                null_argument(["schema", "layout"][number], "There is nothing to adopt, or no layout.").raise();
            }
            recovery::refuse(c"flake_adopt_schema()");
            let layout = adoptable(layout.bytes());
            let undo = Procedure::run(call, |procedure| {
                if procedure.is_atomic {
                    one_transaction("flake_adopt_schema").raise();
                }
                let mut undo = Vec::new();
                for candidate in candidates(schema) {
                    let table = candidate.table;
                    let shown = to_utf8_lossy(&candidate.name).into_owned();
                    if let Some(obstacle) = &candidate.obstacle {
                        notice(format!("did not adopt {shown}"), &format!("It is {}.", to_utf8_lossy(obstacle)));
                    } else {
                        let own = persistently(procedure, table, || adopt(table, layout));
                        notice(format!("adopted {shown}"), &format!("To undo it: {}", to_utf8_lossy(&own)));
                        push(&mut undo, own);
                    }
                }
                route_all(procedure, Some(schema));
                undo
            });
            let undo: Vec<_> = undo.iter().map(|undo| to_utf8_lossy(undo).into_owned()).collect();
            // SAFETY: the column has this type, and nothing else is cached.
            let row = row(call, [pg_sys::TEXTARRAYOID], [undo.into_datum()]);
            row.ok_or_else(|| altered_type("record")).or_raise()
        })
    }
});

/// A table whose key a sequence feeds.
struct Candidate {
    table: pg_sys::Oid,
    name: Vec<u8>,
    obstacle: Option<Vec<u8>>,
}

impl Candidate {
    fn of(row: Texts) -> Option<Self> {
        let [table, name, obstacle] = <[Option<Vec<u8>>; 3]>::try_from(row).ok()?;
        Some(Self { table: oid(&table?)?, name: name?, obstacle })
    }
}

fn oid(text: &[u8]) -> Option<pg_sys::Oid> {
    u32::from_str(&to_utf8_lossy(text)).ok().map(pg_sys::Oid::from)
}

/// Returns the tables of a schema with columns that sequences feed.
fn candidates(schema: pg_sys::Oid) -> Vec<Candidate> {
    let query = [
        b"SELECT ARRAY[c.relation::pg_catalog.oid::pg_catalog.text, c.relation::pg_catalog.text, c.obstacle] FROM ",
        &own_schema()[..],
        b".flake_candidates c JOIN pg_catalog.pg_class r ON r.oid OPERATOR(pg_catalog.=) c.relation \
          WHERE r.relnamespace OPERATOR(pg_catalog.=) $1 AND c.column_name IS NOT NULL ORDER BY c.relation::pg_catalog.oid",
    ]
    .concat();
    rows(query, &[schema.into()]).into_iter().filter_map(Candidate::of).collect()
}

/// Lets all columns of a schema, or of the database, call their sequences through flake_sequences.nextval, of tables whose owner's
/// privileges the current role has.
pub fn route_all(procedure: &Procedure, schema: Option<pg_sys::Oid>) {
    let query = [
        b"SELECT ARRAY[u.relation::pg_catalog.oid::pg_catalog.text, pg_catalog.concat('ALTER TABLE ONLY ', u.relation, \
              ' ALTER COLUMN ', pg_catalog.quote_ident(u.column_name), ' SET DEFAULT flake_sequences.nextval(', \
              pg_catalog.quote_literal(u.sequence::pg_catalog.text), '::pg_catalog.regclass)')] FROM ",
        &own_schema()[..],
        b".flake_unrouted u JOIN pg_catalog.pg_class r ON r.oid OPERATOR(pg_catalog.=) u.relation \
          WHERE r.relnamespace OPERATOR(pg_catalog.=) coalesce($1, r.relnamespace) \
            AND pg_catalog.pg_has_role(r.relowner, 'USAGE') ORDER BY u.relation::pg_catalog.oid",
    ]
    .concat();
    for row in rows(query, &[schema.into()]) {
        let [Some(table), Some(statement)] = &row[..] else { continue };
        persistently(procedure, oid(table).unwrap_or(pg_sys::Oid::INVALID), || {
            unless_locked(patience(), || run(statement.clone()))
        });
    }
}

pub fn one_transaction(procedure: &str) -> Error {
    Error::of(ERRCODE_INVALID_TRANSACTION_TERMINATION, format!("{procedure} cannot run in a transaction block"))
        .detail("It commits after each table, so that the tables that it has changed are not locked while it waits for others.")
        .hint("CALL it outside of a transaction block.")
}
