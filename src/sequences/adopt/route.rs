//! flake_route: a search_path with flake_sequences for a database, so that programs which call nextval find flake_sequences.nextval.
//!
//! The path changes how PostgreSQL prints defaults that call its own nextval, and tools then do not know a serial column. So all of them
//! call flake_sequences.nextval before the path is set. The path also lets objects of its first schemas hide PostgreSQL's own, so
//! the procedure refuses it where other roles could make such objects. The view `flake_sequence_faults` finds all of that: it sees the path once
//! this transaction has set it.
#![allow(unsafe_code, reason = "an entry point, and an array")]

use pgrx::PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;

use super::own_schema;
use super::schema::{one_transaction, route_all};
use crate::error::{Error, listed};
use crate::functions::check::finding::described;
use crate::functions::statements::{names, rows, run};
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::entry_point::entry_point;
use crate::postgres::guard::guarded;
use crate::postgres::procedure::Procedure;
use crate::postgres::report::{notice, warning};
use crate::postgres::{interrupts, recovery};

/// How long the procedure sleeps before it looks for sessions again, in milliseconds.
const PAUSE: i64 = 400;

/// The names of the schemas in array $1, but for those that the path ends with.
const SCHEMAS: &str = "
    SELECT ARRAY[quote_ident(n.nspname)] FROM ROWS FROM (unnest($1)) WITH ORDINALITY u(schema, place)
    JOIN pg_namespace n ON n.oid = u.schema::oid
    WHERE n.nspname <> ALL ('{flake_sequences,pg_catalog}'::name[]) ORDER BY u.place";

/// The name of the database, and the number of elements of array $1.
const DATABASE: &str = "
    SELECT ARRAY[quote_ident(current_database()), cardinality($1)::text]";

/// The other sessions of the database, and its prepared transactions: both can commit what nobody else sees yet. Roles without a
/// privilege do not see when sessions began.
const SESSIONS: &str = "
    SELECT ARRAY[concat(s.pid, CASE WHEN s.backend_start IS NOT NULL THEN ' since ' END,
        date_trunc('second', s.backend_start))]
    FROM pg_stat_activity s
    WHERE s.datname = current_database() AND s.pid <> pg_backend_pid()
      AND s.usesysid IS NOT NULL AND (s.backend_type = 'client backend') IS NOT FALSE
    UNION ALL SELECT ARRAY[concat('prepared transaction ', quote_literal(x.gid))] FROM pg_prepared_xacts x
    WHERE x.database = current_database()";

entry_point!(flake_route(schemas: pg_sys::Datum), |call| {
    // SAFETY: nothing is borrowed that an error could leave borrowed. The argument is an array of this type.
    unsafe {
        guarded(|| {
            recovery::refuse(c"flake_route()");
            let schemas = (!call.is_null(0)).then(|| DatumWithOid::new(schemas, pg_sys::REGNAMESPACEARRAYOID));
            Procedure::run(call, |procedure| {
                if procedure.is_atomic {
                    one_transaction("flake_route").raise();
                }
                let path = schemas.and_then(path).unwrap_or_else(|| no_schema().raise());
                route_all(procedure, None);
                set(&path);
                procedure.commit();
                wait_for_others(procedure);
                let dangers = unset(&path);
                if !dangers.is_empty() {
                    procedure.commit();
                    unsafe_path(&path, &dangers).raise();
                }
            });
            pg_sys::Datum::null()
        })
    }
});

/// A database, quoted, and the search_path for it.
struct Path {
    database: Vec<u8>,
    schemas: Vec<u8>,
}

/// Returns the path that an array of schemas stands for, or None if it has an element that cannot be in it.
fn path(schemas: DatumWithOid<'_>) -> Option<Path> {
    let arguments = [schemas];
    let found: Vec<_> = rows(SCHEMAS, &arguments).into_iter().flatten().flatten().collect();
    let row = rows(DATABASE, &arguments).pop().unwrap_or_default();
    let [Some(database), Some(count)] = &row[..] else { return None };
    let is_whole = !found.is_empty() && found.len().to_string().as_bytes() == &count[..];
    is_whole.then(|| Path { database: database.clone(), schemas: found.join(&b", "[..]) })
}

/// Sets the path of the database, and looks at what it does. Raises an error if it is not safe.
fn set(path: &Path) {
    let statement = [
        b"ALTER DATABASE ",
        &path.database[..],
        b" SET search_path = ",
        &path.schemas,
        b", flake_sequences, pg_catalog",
    ];
    run(statement.concat());
    let dangers = faults("=) ANY");
    if !dangers.is_empty() {
        unsafe_path(path, &dangers).raise();
    }
    let gaps = faults("<>) ALL");
    if !gaps.is_empty() {
        warning(
            "the search_path of the database does not reach everything".to_owned(),
            Some(&described(gaps.iter())),
            "Change these, or PostgreSQL's functions of sequences raise errors there once sequences are adopted.",
        );
    }
}

/// Takes the path away again if it is not safe: a transaction that was open meanwhile may have made objects that nobody saw. Returns why.
fn unset(path: &Path) -> Vec<String> {
    let dangers = faults("=) ANY");
    if !dangers.is_empty() {
        run([b"ALTER DATABASE ", &path.database[..], b" RESET search_path"].concat());
    }
    dangers
}

/// Returns the faults whose kind keeps the path from being set, or the other ones.
fn faults(are: &str) -> Vec<String> {
    let query = [
        b"SELECT ARRAY[f.fault] FROM ",
        &own_schema()[..],
        b".flake_sequence_faults f WHERE f.kind OPERATOR(pg_catalog.",
        are.as_bytes(),
        b" ('{creator,name,default}'::pg_catalog.text[]) ORDER BY f.kind, f.fault",
    ];
    names(rows(query.concat(), &[]))
}

fn unsafe_path(path: &Path, dangers: &[String]) -> Error {
    Error::not_ready(format!("search_path of database {} would not be safe", to_utf8_lossy(&path.database)))
        .detail(described(dangers.iter()))
        .hint(
            "Take these privileges away, give these objects to the owner of the database or other names, and call the \
             procedure again. The database has no search_path of its own now.",
        )
}

/// Waits until the sessions have ended that are there now: the path of the database is not theirs.
fn wait_for_others(procedure: &Procedure) {
    let mut before = sessions();
    if !before.is_empty() {
        notice(
            format!(
                "waiting for {} sessions and prepared transactions to end, which began before the search_path was set",
                before.len()
            ),
            &format!("They are: {}.", listed(before.iter(), "others")),
        );
    }
    while !before.is_empty() {
        interrupts::sleep(PAUSE, interrupts::wait_event(c"FlakeRoute"));
        // Within a transaction, PostgreSQL shows the same sessions again.
        procedure.commit();
        let now = sessions();
        before.retain(|session| now.contains(session));
    }
}

fn sessions() -> Vec<String> {
    names(rows(SESSIONS, &[]))
}

fn no_schema() -> Error {
    Error::of(ERRCODE_INVALID_PARAMETER_VALUE, "schemas do not make a search_path")
        .detail("Each must be a schema of the application, and there must be one. The procedure adds flake_sequences and pg_catalog.")
        .hint("Name the schemas of the application in the order of its search_path: CALL flake_route('public').")
}
