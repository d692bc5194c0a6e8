//! Custom layouts: where they are kept, and how a session knows of them.
//!
//! A custom layout is a foreign server of the foreign-data wrapper `flake_layout`, its definition an option. A row of
//! a table would be restored by pg_dump among the data of other tables, whose generated columns need the layout;
//! servers come before any table. They also bring what layouts need: one name for a database, privileges, comments,
//! and invalidation of caches by PostgreSQL itself.
#![allow(unsafe_code, reason = "reads PostgreSQL's catalog caches")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU64, Ordering};

use flake_core::{Definition, Error, Layout, built_in, unknown_layout};
use pgrx::PgList;
use pgrx::prelude::*;
use pgrx::spi::{quote_identifier, quote_literal};

use crate::clock;
use crate::error::{OrRaise, raise};
use crate::postgres::json::{Json, readable};

const WRAPPER: &CStr = c"flake_layout";

/// How often foreign servers have changed, as far as this session has heard.
static CHANGES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The custom layouts that were looked up, since how many changes.
    static KNOWN: RefCell<(u64, HashMap<String, &'static Layout>)> = RefCell::default();
    /// Every definition that this session has seen. They are few, do not change, and generators go on with them.
    static SEEN: RefCell<Vec<(String, &'static Layout)>> = RefCell::default();
}

/// What a name stands for is known as long as this number is the same.
#[inline]
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

/// Has PostgreSQL tell when foreign servers change.
pub fn watch() {
    #[pg_guard]
    unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
        CHANGES.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the callback lives as long as the library, which is never unloaded.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::FOREIGNSERVEROID as i32;
        pg_sys::CacheRegisterSyscacheCallback(cache, Some(changed), pg_sys::Datum::from(0));
    }
}

/// The custom layout of this name.
pub fn find(name: &str) -> Result<&'static Layout, Error> {
    let changes = changes();
    let known = KNOWN.with_borrow(|(since, known)| known.get(name).copied().filter(|_| *since == changes));
    if let Some(layout) = known {
        return Ok(layout);
    }
    let Some((json, made_as)) = stored(name) else { return Err(unknown_layout(name, &names())) };
    if made_as.as_deref() != Some(&fingerprint(&json)) {
        return Err(Error::Altered { layout: name.to_owned().into() });
    }
    let layout = seen(name, &json)?;
    KNOWN.with_borrow_mut(|(since, known)| {
        if *since != changes {
            known.clear();
            *since = changes;
        }
        known.insert(name.to_owned(), layout);
    });
    Ok(layout)
}

/// The layout of a definition, made once for each name and definition.
fn seen(name: &str, json: &str) -> Result<&'static Layout, Error> {
    let before = |seen: &Vec<(String, &'static Layout)>| {
        seen.iter().find(|(known, layout)| known == json && layout.name() == name).map(|(_, layout)| *layout)
    };
    if let Some(layout) = SEEN.with_borrow(before) {
        return Ok(layout);
    }
    let layout: &'static Layout = Box::leak(Box::new(Definition::from_json(name, json)?.layout(name)?));
    SEEN.with_borrow_mut(|seen| seen.push((json.to_owned(), layout)));
    Ok(layout)
}

/// The definition that the catalog holds for a name, and the fingerprint of the one that it was made with.
fn stored(name: &str) -> Option<(String, Option<String>)> {
    let name = CString::new(name).ok()?;
    let string = |text: *const _| {
        // SAFETY: a C string that PostgreSQL has just made.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    // SAFETY: both lookups return palloc'd copies; the wrapper of an existing server exists; the option's value is a
    // string, as the grammar of CREATE SERVER has it.
    unsafe {
        // A name that is new to this session may be new in the database, also within a transaction.
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

/// Kept beside a definition as the server's version. IDs live by their definition, and ALTER SERVER must not change it.
fn fingerprint(json: &str) -> String {
    // SAFETY: sha256_bytea takes a bytea and returns one.
    let digest: Option<&[u8]> =
        unsafe { pgrx::direct_function_call(pg_sys::sha256_bytea, &[json.as_bytes().into_datum()]) };
    digest.unwrap_or_default().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The names of all custom layouts, in order.
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

#[pg_extern(sql = "")]
fn flake_create_layout(name: &[u8], definition: Json) {
    let name = ascii(name);
    let parsed = Definition::from_json(&name, &definition.0.to_string()).or_raise();
    parsed.check_new(&name, clock::now()).or_raise();
    let taken = CString::new(name.clone()).is_ok_and(|name| {
        // SAFETY: takes a C string, returns a palloc'd copy or null.
        unsafe { !pg_sys::GetForeignServerByName(name.as_ptr(), true).is_null() }
    });
    if taken {
        raise(Error::NameTaken { layout: name.into() });
    }
    let json = serde_json::to_string(&parsed).unwrap_or_default();
    let (server, version, definition) =
        (quote_identifier(&name), quote_literal(fingerprint(&json)), quote_literal(json));
    run(&format!(
        "CREATE SERVER {server} VERSION {version} FOREIGN DATA WRAPPER flake_layout OPTIONS (definition {definition})"
    ));
}

#[pg_extern(sql = "")]
fn flake_drop_layout(name: &[u8]) {
    let name = ascii(name);
    if built_in(&name).is_some() {
        raise(Error::BuiltIn { layout: name.into() });
    }
    if stored(&name).is_none() {
        raise(unknown_layout(&name, &names()));
    }
    run(&format!("DROP SERVER {}", quote_identifier(&name)));
}

fn run(command: &str) {
    Spi::run(command).unwrap_or_else(|error| pgrx::error!("{error}"));
}

/// Text that is the same in every encoding: what is not ASCII is escaped. Names of layouts and digits of IDs are ASCII.
pub fn ascii(text: &[u8]) -> String {
    text.escape_ascii().to_string()
}

/// Checks the options of CREATE SERVER and ALTER SERVER, also of those that pg_dump wrote.
#[pg_extern(sql = "")]
fn flake_layout_validator(options: Array<&[u8]>, catalog: pg_sys::Oid) {
    let options: Vec<_> = options.iter().flatten().map(readable).collect();
    let definition = match options.as_slice() {
        [] if catalog != pg_sys::ForeignServerRelationId => return,
        [option] if catalog == pg_sys::ForeignServerRelationId => option.strip_prefix("definition="),
        _ => None,
    };
    let Some(json) = definition else { raise(Error::NotALayout) };
    Definition::from_json("", json).and_then(|definition| definition.layout("")).or_raise();
}
