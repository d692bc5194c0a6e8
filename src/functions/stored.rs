//! Rules for layouts and keys: both are foreign servers, of wrappers of the extension.

use std::ffi::CStr;

use pgrx::PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE;
use pgrx::pg_sys;

use crate::error::{Error, OrRaise, owner_only};
use crate::postgres::recovery::forbid_if_read_only;
use crate::postgres::role::present;

/// Returns the owner as whom layouts and keys are written: the one of the extension or of the database whose privileges the caller has.
pub fn writer(function: &'static str, command: &CStr) -> pg_sys::Oid {
    let owner = owner_only(&format!("call {function}")).or_raise();
    // A change of a mapping alone is not checked elsewhere.
    forbid_if_read_only(command);
    owner.unwrap_or_else(present)
}

/// Refuses foreign tables of layouts and keys. A role with USAGE on the server could make one, which nobody could read. It would be dropped
/// with the layout or the key, which would wait for whoever has locked it.
pub fn refuse_table(catalog: pg_sys::Oid) {
    if catalog == pg_sys::ForeignTableRelationId {
        Error::of(ERRCODE_WRONG_OBJECT_TYPE, "layouts and keys have no foreign tables")
            .detail("Their foreign servers have no data.")
            .hint("Use a foreign server of another wrapper.")
            .raise();
    }
}
