//! The foreign servers of the foreign-data wrapper `flake_layout`, as the newest catalog has them.
#![allow(unsafe_code, reason = "reads PostgreSQL's catalogs and their caches")]

use std::ffi::{CStr, CString};

use pgrx::{PgList, direct_function_call, pg_sys};

const WRAPPER: &CStr = c"flake_layout";

/// A foreign server of the wrapper.
pub struct Stored {
    pub definition: String,
    /// The fingerprint of the original definition.
    pub fingerprint: Option<String>,
    pub owner: pg_sys::Oid,
}

/// Returns the foreign server with this name, if it is one of the wrapper and has a definition.
pub fn find(name: &str) -> Option<Stored> {
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
        Some(Stored {
            definition: string(pg_sys::defGetString(definition)),
            fingerprint: (!version.is_null()).then(|| string(version)),
            owner: server.owner,
        })
    }
}

/// Returns whether a foreign server, layout or not, has this name.
pub fn is_name_taken(name: &str) -> bool {
    CString::new(name).is_ok_and(|name| {
        // SAFETY: it takes a C string, and returns a palloc'd copy or null.
        unsafe { !pg_sys::GetForeignServerByName(name.as_ptr(), true).is_null() }
    })
}

/// Returns the names of the wrapper's foreign servers, in order; those that are not ASCII are no names of layouts.
pub fn names() -> Vec<String> {
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    let mut names = Vec::new();
    // SAFETY: a scan of a catalog by an index, with the newest snapshot; the rows are of this catalog.
    unsafe {
        let wrapper = pg_sys::get_foreign_data_wrapper_oid(WRAPPER.as_ptr(), true);
        let catalog = pg_sys::table_open(pg_sys::ForeignServerRelationId, lock);
        let index = pg_sys::Oid::from(pg_sys::ForeignServerNameIndexId);
        let none = std::ptr::null_mut();
        let scan = pg_sys::systable_beginscan(catalog, index, true, none, 0, std::ptr::null_mut());
        while let Some(row) = pg_sys::systable_getnext(scan).as_mut() {
            let server = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_foreign_server>();
            if server.srvfdw == wrapper
                && let Ok(name) = CStr::from_ptr(server.srvname.data.as_ptr()).to_str()
                && name.is_ascii()
            {
                names.push(name.to_owned());
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, lock);
    }
    names.sort_unstable();
    names
}

/// Returns what is stored as the server's version. It reveals changes by ALTER SERVER: an ID can be read only by the
/// definition that it was made with.
pub fn fingerprint(definition: &str) -> String {
    use pgrx::IntoDatum;
    // SAFETY: sha256_bytea takes a bytea and returns a bytea.
    let digest: Option<&[u8]> =
        unsafe { direct_function_call(pg_sys::sha256_bytea, &[definition.as_bytes().into_datum()]) };
    digest.unwrap_or_default().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
