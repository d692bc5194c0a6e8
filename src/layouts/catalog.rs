//! The foreign servers of the foreign-data wrapper `flake_layout`, read from the newest catalog.
#![allow(unsafe_code, reason = "reads PostgreSQL's catalogs and their caches")]

use std::ffi::{CStr, CString};

use flake_core::sha256;
use pgrx::{PgList, pg_sys};

use crate::postgres::foreign_servers;
use crate::postgres::json::MAX_BYTES;

const WRAPPER: &CStr = c"flake_layout";

/// A foreign server of the wrapper.
pub struct Stored {
    pub definition: String,
    /// The fingerprint of the original definition.
    pub fingerprint: Option<String>,
    pub owner: pg_sys::Oid,
}

/// Returns the foreign server with this name, if it belongs to the wrapper and has a definition.
pub fn find(name: &str) -> Option<Stored> {
    let name = CString::new(name).ok()?;
    let string = |text: *const _| {
        // SAFETY: PostgreSQL has just made this C string.
        let text = unsafe { CStr::from_ptr(text) }.to_bytes();
        // A longer text is not what flake_create_layout has stored; the fingerprint tells.
        String::from_utf8_lossy(text.get(..MAX_BYTES).unwrap_or(text)).into_owned()
    };
    // SAFETY: both lookups return palloc'd copies; the wrapper of an existing server exists; in CREATE SERVER, the value of
    // an option is a string.
    unsafe {
        // If this session has not seen the name before, it may have been created since the transaction began.
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

/// Returns the names of the wrapper's foreign servers, in order.
pub fn names() -> Vec<String> {
    foreign_servers::names(WRAPPER)
}

/// Returns what is stored as the server's version. It reveals changes by ALTER SERVER, which are not allowed, because an ID can
/// only be read by the definition that it was made with.
pub fn fingerprint(definition: &str) -> String {
    format!("{:016x}", sha256(definition.as_bytes()))
}
