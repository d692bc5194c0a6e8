//! Runs statements and queries in the database's encoding, whatever names contain.

use std::ffi::CString;

use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::spi::{SpiClient, SpiError};

use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::local_settings;

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

/// Runs a statement with the settings of the caller.
pub fn run(client: &mut SpiClient<'_>, text: Vec<u8>) -> Result<(), SpiError> {
    client.update(&command(text), None, &[]).map(drop)
}

/// Runs a query that returns arrays of text. Returns its rows as bytes in the database's encoding. It sees everything committed so
/// far.
pub fn rows(
    client: &mut SpiClient<'_>,
    query: impl AsRef<[u8]>,
    arguments: &[DatumWithOid<'_>],
) -> Result<Vec<Texts>, SpiError> {
    let bytes = b"SELECT ARRAY(SELECT pg_catalog.convert_to(u.v, pg_catalog.getdatabaseencoding())
                               FROM pg_catalog.unnest(q.v) WITH ORDINALITY u(v, n) ORDER BY u.n) FROM (";
    let rows = client.update(&command([bytes, query.as_ref(), b") q(v)"].concat()), None, arguments)?;
    rows.map(|row| {
        let texts = row.get::<Array<'_, &[u8]>>(1)?;
        Ok(texts.iter().flat_map(Array::iter).map(|text| text.map(<[u8]>::to_vec)).collect())
    })
    .collect()
}

/// Returns the first text of each row.
pub fn names(rows: Vec<Texts>) -> Vec<String> {
    let mut names: Vec<_> =
        rows.iter().filter_map(|row| Some(to_utf8_lossy(row.first()?.as_ref()?).into_owned())).collect();
    names.sort_unstable();
    names
}
