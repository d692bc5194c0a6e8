//! Custom layouts.
//!
//! A custom layout is a foreign server of the foreign-data wrapper `flake_layout`, with its definition as an option. pg_dump writes
//! servers before any table, so generated columns that need the layout can be restored; rows of a table would be restored too late.
//! Foreign servers also provide what layouts need: names that are unique in a database, privileges, comments, and cache
//! invalidation.
#![allow(unsafe_code, reason = "subscribes to PostgreSQL's invalidations")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

use flake_core::{Definition, Layout, is_always_built_in};
use pgrx::prelude::*;

use super::catalog::{self, Stored};
use crate::error::Error;
use crate::postgres::memory::require;

/// How many invalidations of foreign servers this session has received.
static CATALOG_VERSION: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Every layout that this session has parsed, by name and definition. There are few, and generators keep references to them.
    static PARSED: RefCell<ManuallyDrop<BTreeMap<(String, String), &'static Layout>>> =
        const { RefCell::new(ManuallyDrop::new(BTreeMap::new())) };
}

/// Returns a number that changes with the catalog. As long as it is the same, each name stands for the same layout.
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
        let cache = pg_sys::SysCacheIdentifier::FOREIGNSERVEROID as _;
        pg_sys::CacheRegisterSyscacheCallback(cache, Some(changed), pg_sys::Datum::from(0));
    }
}

/// Returns the custom layout with this name, if there is one. A built-in name needs no lookup, which makes the first ID cheap.
pub fn find(name: &str) -> Result<Option<&'static Layout>, Error> {
    if is_always_built_in(name) {
        return Ok(None);
    }
    let Some(Stored { definition, fingerprint, .. }) = catalog::find(name) else { return Ok(None) };
    if fingerprint.as_deref() != Some(&catalog::fingerprint(&definition)) {
        let message = format!("definition of layout \"{name}\" has been changed");
        let detail = "IDs can be read only by the definition that they were made with.";
        return Err(Error::not_ready(message)
            .detail(detail)
            .hint("Undo the change, or create a layout with another name with flake_create_layout."));
    }
    parsed(name, definition).map(Some)
}

/// Returns the custom layouts by their names, in order.
pub fn all() -> impl Iterator<Item = (String, Result<&'static Layout, Error>)> {
    catalog::names().into_iter().filter_map(|name| {
        let layout = find(&name).transpose()?;
        Some((name, layout))
    })
}

/// Returns the layout of a definition, which is parsed once for each name and definition.
fn parsed(name: &str, definition: String) -> Result<&'static Layout, Error> {
    let key = (name.to_owned(), definition);
    if let Some(layout) = PARSED.with_borrow(|parsed| parsed.get(&key).copied()) {
        return Ok(layout);
    }
    require();
    let layout: &'static Layout = Box::leak(Box::new(Definition::from_json(name, &key.1)?.layout(name)?));
    PARSED.with_borrow_mut(|parsed| parsed.insert(key, layout));
    Ok(layout)
}
