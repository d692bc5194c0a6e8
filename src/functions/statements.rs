//! Runs statements and queries in the database's encoding, whatever names contain.

use std::ffi::CString;

use pgrx::PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED;
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::spi::{SpiClient, SpiError};

use crate::error::Error;
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::local_settings;
use crate::postgres::memory::{collect_or_raise, push};

/// How long a text of the catalog may be, such as the expression of a constraint.
const MAX_BYTES: usize = 120_000;

/// A row of texts.
pub type Texts = Vec<Option<Vec<u8>>>;

/// Calls `act` with an empty search_path, so that PostgreSQL shows names with their schemas.
pub fn qualified<R>(act: impl FnOnce() -> R) -> R {
    local_settings::with(&[(c"search_path", c"pg_catalog, pg_temp")], act)
}

/// Returns a statement in the database's encoding.
pub fn command(text: Vec<u8>) -> CString {
    CString::new(text).unwrap_or_default()
}

/// Connects to PostgreSQL's interface for statements. An error of the interface itself, not of a statement, would be a bug.
pub fn connected<R>(act: impl FnOnce(&mut SpiClient<'_>) -> Result<R, SpiError>) -> R {
    Spi::connect_mut(act).unwrap_or_else(|error| pgrx::error!("{error}"))
}

/// Runs a statement with the settings of the caller.
pub fn run(text: impl Into<Vec<u8>>) {
    connected(|client| client.update(&command(text.into()), None, &[]).map(drop));
}

/// Runs a query that returns arrays of text. Returns its rows as bytes in the database's encoding. It sees everything committed so far. The
/// search_path is empty, so names in the query can only be PostgreSQL's own.
pub fn rows(query: impl AsRef<[u8]>, arguments: &[DatumWithOid<'_>]) -> Vec<Texts> {
    let bytes = b"SELECT ARRAY(SELECT pg_catalog.convert_to(u.v, pg_catalog.getdatabaseencoding())
                               FROM pg_catalog.unnest(q.v) WITH ORDINALITY u(v, n) ORDER BY u.n) FROM (";
    let query = command([bytes, query.as_ref(), b") q(v)"].concat());
    let read = |client: &mut SpiClient<'_>| {
        let mut all = Vec::new();
        for row in client.update(&query, None, arguments)? {
            let texts = row.get::<Array<'_, &[u8]>>(1)?;
            push(&mut all, texts.iter().flat_map(Array::iter).map(|text| text.map(copied)).collect());
        }
        Ok(all)
    };
    qualified(|| connected(read))
}

/// Runs a query that returns texts. It assigns no transaction ID, so it also runs on a standby, and sees what its caller's snapshot sees.
pub fn texts(query: &str) -> Vec<String> {
    Spi::connect(|client| {
        client.select(query, None, &[])?.filter_map(|row| row.get(1).transpose()).collect::<Result<_, SpiError>>()
    })
    .unwrap_or_else(|error| pgrx::error!("{error}"))
}

/// Copies a text of the catalog.
fn copied(text: &[u8]) -> Vec<u8> {
    if text.len() > MAX_BYTES {
        Error::of(ERRCODE_PROGRAM_LIMIT_EXCEEDED, "expression in the catalog is too long")
            .detail(format!("It has {} bytes; flake_convert reads at most {MAX_BYTES}.", text.len()))
            .hint("Shorten the default of the table's key, or the CHECK constraint.")
            .raise();
    }
    text.to_vec()
}

/// Returns the first text of each row.
pub fn names(rows: Vec<Texts>) -> Vec<String> {
    let mut names =
        collect_or_raise(rows.iter().filter_map(|row| Some(to_utf8_lossy(row.first()?.as_ref()?).into_owned())));
    names.sort_unstable();
    names
}
