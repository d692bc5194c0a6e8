//! The names of foreign servers, which store layouts and keys.
#![allow(unsafe_code, reason = "reads PostgreSQL's catalogs and their caches")]

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

use super::memory::push;

/// Returns whether a foreign server of any wrapper has this name.
pub fn is_name_taken(name: &str) -> bool {
    CString::new(name).is_ok_and(|name| {
        // SAFETY: it takes a C string, and returns a palloc'd copy or null.
        unsafe { !pg_sys::GetForeignServerByName(name.as_ptr(), true).is_null() }
    })
}

/// Returns the names of a wrapper's foreign servers, in order. Names that are not ASCII are left out, because layouts and keys
/// never have them.
pub fn names(wrapper: &CStr) -> Vec<String> {
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    let mut names = Vec::new();
    // SAFETY: a scan of a catalog by an index, with the newest snapshot; the rows are of this catalog.
    unsafe {
        let wrapper = pg_sys::get_foreign_data_wrapper_oid(wrapper.as_ptr(), true);
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
                push(&mut names, name.to_owned());
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, lock);
    }
    names.sort_unstable();
    names
}

/// Locks a server until the end of the transaction, against other sessions that take the same lock.
pub fn lock(server: pg_sys::Oid) {
    let mode = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;
    // SAFETY: it waits for a lock.
    unsafe { pg_sys::LockDatabaseObject(pg_sys::ForeignServerRelationId, server, 0, mode) };
}
