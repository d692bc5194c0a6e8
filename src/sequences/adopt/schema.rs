//! flake_adopt_schema: adopts the key of each table of a schema, in a transaction of its own.
//!
//! A column that cannot be adopted keeps its numbers, and calls them through flake_sequences.nextval as well. So once that schema stands
//! in a search_path, PostgreSQL prints all such defaults alike, and tools that compare defaults find no difference.
#![allow(unsafe_code, reason = "an entry point, and a row")]

use std::str::FromStr;

use pgrx::PgSqlErrorCode::ERRCODE_INVALID_TRANSACTION_TERMINATION;
use pgrx::prelude::*;
use pgrx::spi::SpiError;

use super::{adopt, adoptable, own_schema, patience, persistently};
use crate::error::{Error, OrRaise, altered_type};
use crate::functions::convert_table::statements::{Texts, qualified, rows, run};
use crate::functions::null_argument;
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
                    one_transaction().raise();
                }
                let mut undo = Vec::new();
                for candidate in candidates(schema) {
                    let table = candidate.table;
                    let shown = to_utf8_lossy(&candidate.name).into_owned();
                    if let Some(obstacle) = &candidate.obstacle {
                        persistently(procedure, table, || route(&candidate));
                        notice(format!("did not adopt {shown}"), &format!("It is {}.", to_utf8_lossy(obstacle)));
                    } else {
                        let own = persistently(procedure, table, || adopt(table, layout));
                        notice(format!("adopted {shown}"), &format!("To undo it: {}", to_utf8_lossy(&own)));
                        push(&mut undo, own);
                    }
                }
                undo
            });
            let undo: Vec<_> = undo.iter().map(|undo| to_utf8_lossy(undo).into_owned()).collect();
            // SAFETY: the column has this type, and nothing else is cached.
            let row = row(call, [pg_sys::TEXTARRAYOID], [undo.into_datum()]);
            row.ok_or_else(|| altered_type("record")).or_raise()
        })
    }
});

/// A column that a sequence feeds.
struct Candidate {
    table: pg_sys::Oid,
    name: Vec<u8>,
    /// Its name, quoted.
    column: Vec<u8>,
    /// The sequence, as a literal.
    sequence: Vec<u8>,
    is_identity: bool,
    /// Whether its default calls flake_sequences.nextval.
    is_routed: bool,
    obstacle: Option<Vec<u8>>,
}

impl Candidate {
    fn of(row: Texts) -> Option<Self> {
        let [table, name, column, sequence, kind, obstacle, is_routed] = <[Option<Vec<u8>>; 7]>::try_from(row).ok()?;
        let table = u32::from_str(&to_utf8_lossy(&table?)).ok()?.into();
        let (is_identity, is_routed) = (kind? == b"identity", is_routed? == b"true");
        let (name, column, sequence) = (name?, column?, sequence?);
        Some(Self { table, name, column, sequence, is_identity, is_routed, obstacle })
    }
}

/// Returns the columns of a schema's tables that sequences feed.
fn candidates(schema: pg_sys::Oid) -> Vec<Candidate> {
    let query = [
        b"SELECT ARRAY[c.relation::pg_catalog.oid::pg_catalog.text, c.relation::pg_catalog.text, pg_catalog.quote_ident(c.\"column\"), \
          pg_catalog.quote_literal(c.sequence::pg_catalog.text), c.kind, c.obstacle, EXISTS (
            SELECT FROM pg_catalog.pg_attrdef e
            JOIN pg_catalog.pg_depend d ON d.objid OPERATOR(pg_catalog.=) e.oid
              AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass
              AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
              AND d.refobjid OPERATOR(pg_catalog.=) 'flake_sequences.nextval(pg_catalog.regclass)'::pg_catalog.regprocedure
            JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) e.adrelid
              AND a.attnum OPERATOR(pg_catalog.=) e.adnum
            WHERE e.adrelid OPERATOR(pg_catalog.=) c.relation::pg_catalog.oid
              AND a.attname OPERATOR(pg_catalog.=) c.\"column\")::pg_catalog.text] FROM ",
        &own_schema()[..],
        b".flake_candidates c JOIN pg_catalog.pg_class r ON r.oid OPERATOR(pg_catalog.=) c.relation \
          WHERE r.relnamespace OPERATOR(pg_catalog.=) $1 AND c.\"column\" IS NOT NULL ORDER BY c.relation::pg_catalog.oid",
    ]
    .concat();
    let found = Spi::connect_mut(|client| qualified(|| rows(client, query, &[schema.into()])))
        .unwrap_or_else(|error| pgrx::error!("{error}"));
    found.into_iter().filter_map(Candidate::of).collect()
}

/// Lets a column that cannot be adopted call its sequence through flake_sequences.nextval. Returns None if a lock is in the way.
fn route(candidate: &Candidate) -> Option<()> {
    let is_expression = candidate.obstacle.as_deref() == Some(b"the default is an expression");
    if candidate.is_identity || candidate.is_routed || is_expression {
        return Some(());
    }
    let Candidate { name, column, sequence, .. } = candidate;
    unless_locked(patience(), || {
        let statement =
            [b"ALTER TABLE ", &name[..], b" ALTER COLUMN ", column, b" SET DEFAULT flake_sequences.nextval(", sequence];
        let statement = [&statement.concat()[..], b"::pg_catalog.regclass)"].concat();
        Spi::connect_mut(|client| run(client, statement)).unwrap_or_else(|error: SpiError| pgrx::error!("{error}"))
    })
}

fn one_transaction() -> Error {
    Error::of(ERRCODE_INVALID_TRANSACTION_TERMINATION, "flake_adopt_schema cannot run in a transaction block")
        .detail("It commits after each table, so that the tables that it has changed are not locked while it waits for others.")
        .hint("CALL it outside of a transaction block, or CALL flake_adopt for each table.")
}
