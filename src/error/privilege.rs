//! Checks of the caller's role. PUBLIC may execute every function of the extension, so that GRANT and REVOKE on all functions of a
//! schema succeed and change nothing. The few functions that are not for everybody check the caller themselves.

use pgrx::PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE as DENIED;

use super::Error;
use crate::postgres::{extension, role};

/// For functions that affect the whole server, whose databases may have other owners.
pub fn superuser_only(function: &'static str) -> Result<(), Error> {
    role::is_superuser().then_some(()).ok_or_else(|| {
        Error::of(DENIED, format!("must be superuser to call {function}"))
            .detail("The marks belong to the whole server.")
    })
}

/// For functions that affect one database: the owner of the extension and members of that role may call them. Returns the owner, or
/// None if the extension does not exist, in which case only superusers may call.
pub fn owner_only(function: &'static str) -> Result<Option<pgrx::pg_sys::Oid>, Error> {
    let owner = extension::find(c"flake").map(|extension| extension.owner);
    let may = owner.map_or_else(role::is_superuser, role::has_privileges_of);
    if may {
        return Ok(owner);
    }
    Err(Error::of(DENIED, format!("must be owner of extension flake to call {function}"))
        .detail(format!("The owner of the extension is role \"{}\".", owner.map(role::name).unwrap_or_default()))
        .hint("Call it as a member of that role."))
}

/// For functions that show data of the whole server.
pub fn monitor_only(what: &'static str) -> Result<(), Error> {
    role::is_monitor().then_some(()).ok_or_else(|| {
        Error::of(DENIED, format!("permission denied for {what}"))
            .detail("Only members of pg_monitor see the whole server.")
            .hint("A superuser can GRANT pg_monitor to this role.")
    })
}
