//! Custom layouts in the catalog.
//!
//! A custom layout is a foreign server of the foreign-data wrapper `flake_layout`, with its definition as an option.
//! pg_dump writes servers before any table, so generated columns that need the layout can be restored; rows of a table
//! would come too late. Foreign servers also have what layouts need: names that are unique in a database, privileges,
//! comments, and cache invalidation.
#![allow(unsafe_code, reason = "reads PostgreSQL's catalog caches")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU64, Ordering};

use flake_core::{Definition, Layout, unknown_layout};
use pgrx::PgList;
use pgrx::prelude::*;

use crate::error::Error;

const WRAPPER: &CStr = c"flake_layout";

/// How many changes of foreign servers this session has heard of.
static CATALOG_VERSION: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The custom layouts found in this version of the catalog.
    static FOUND: RefCell<(u64, HashMap<String, &'static Layout>)> = RefCell::default();
    /// Every definition that this session has parsed, with its layout. There are few of them, and generators keep theirs.
    static PARSED: RefCell<Vec<(String, &'static Layout)>> = RefCell::default();
}

/// Returns a number that changes with the catalog. What a name stands for is known as long as it stays the same.
#[inline]
pub fn catalog_version() -> u64 {
    CATALOG_VERSION.load(Ordering::Relaxed)
}

/// Subscribes to invalidations of foreign servers.
pub fn subscribe() {
    #[pg_guard]
    unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
        CATALOG_VERSION.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the callback lives as long as the library, which is never unloaded.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::FOREIGNSERVEROID as i32;
        pg_sys::CacheRegisterSyscacheCallback(cache, Some(changed), pg_sys::Datum::from(0));
    }
}

/// Returns the custom layout with this name.
pub fn find(name: &str) -> Result<&'static Layout, Error> {
    let now = catalog_version();
    let found = FOUND.with_borrow(|(version, found)| found.get(name).copied().filter(|_| *version == now));
    if let Some(layout) = found {
        return Ok(layout);
    }
    let Some((json, original)) = stored(name) else { return Err(unknown_layout(name, &names()).into()) };
    if original.as_deref() != Some(&fingerprint(&json)) {
        return Err(Error::Altered { layout: name.to_owned().into() });
    }
    let layout = parsed(name, &json)?;
    FOUND.with_borrow_mut(|(version, found)| {
        if *version != now {
            found.clear();
            *version = now;
        }
        found.insert(name.to_owned(), layout);
    });
    Ok(layout)
}

/// Returns the layout of a definition, which is parsed once for each name and definition.
fn parsed(name: &str, json: &str) -> Result<&'static Layout, Error> {
    let known = |parsed: &Vec<(String, &'static Layout)>| {
        parsed.iter().find(|(known, layout)| known == json && layout.name() == name).map(|(_, layout)| *layout)
    };
    if let Some(layout) = PARSED.with_borrow(known) {
        return Ok(layout);
    }
    let layout: &'static Layout = Box::leak(Box::new(Definition::from_json(name, json)?.layout(name)?));
    PARSED.with_borrow_mut(|parsed| parsed.push((json.to_owned(), layout)));
    Ok(layout)
}

/// Returns the definition that the catalog holds for a name, and the fingerprint of the original definition.
fn stored(name: &str) -> Option<(String, Option<String>)> {
    let name = CString::new(name).ok()?;
    let string = |text: *const _| {
        // SAFETY: PostgreSQL has just made this C string.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    // SAFETY: both lookups return palloc'd copies; the wrapper of an existing server exists; in CREATE SERVER, the value of
    // an option is a string.
    unsafe {
        // A name that is new to this session may have been created since the transaction began.
        pg_sys::AcceptInvalidationMessages();
        let server = pg_sys::GetForeignServerByName(name.as_ptr(), true).as_ref()?;
        let wrapper = pg_sys::GetForeignDataWrapper(server.fdwid);
        if CStr::from_ptr((*wrapper).fdwname) != WRAPPER {
            return None;
        }
        let options = PgList::<pg_sys::DefElem>::from_pg(server.options);
        let definition = options.iter_ptr().find(|option| CStr::from_ptr((**option).defname) == c"definition")?;
        let version = server.serverversion;
        Some((string(pg_sys::defGetString(definition)), (!version.is_null()).then(|| string(version))))
    }
}

/// Returns what is stored as the server's version. It reveals changes by ALTER SERVER: an ID can be read only by the
/// definition that it was made with.
pub fn fingerprint(json: &str) -> String {
    // SAFETY: sha256_bytea takes a bytea and returns a bytea.
    let digest: Option<&[u8]> =
        unsafe { pgrx::direct_function_call(pg_sys::sha256_bytea, &[json.as_bytes().into_datum()]) };
    digest.unwrap_or_default().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether a custom layout with this name exists.
pub fn exists(name: &str) -> bool {
    stored(name).is_some()
}

/// Returns whether a foreign server, layout or not, has this name.
pub fn is_name_taken(name: &str) -> bool {
    CString::new(name).is_ok_and(|name| {
        // SAFETY: it takes a C string, and returns a palloc'd copy or null.
        unsafe { !pg_sys::GetForeignServerByName(name.as_ptr(), true).is_null() }
    })
}

/// Returns the names of all custom layouts, in order.
pub fn names() -> Vec<String> {
    let query = "SELECT s.srvname::text FROM pg_catalog.pg_foreign_server s \
                 JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid OPERATOR(pg_catalog.=) s.srvfdw \
                 WHERE w.fdwname OPERATOR(pg_catalog.=) 'flake_layout' ORDER BY 1";
    Spi::connect(|client| {
        let rows = client.select(query, None, &[])?;
        rows.map(|row| row.get::<String>(1).map(Option::unwrap_or_default)).collect::<Result<_, _>>()
    })
    .unwrap_or_else(|error: pgrx::spi::SpiError| pgrx::error!("{error}"))
}
