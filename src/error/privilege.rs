//! Checks of the caller's role. PUBLIC may execute every function of the extension, so that GRANT and REVOKE on all functions of a
//! schema succeed and change nothing. The few functions that are not for everybody check the caller themselves.

use pgrx::PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE as DENIED;

use super::Error;
use crate::postgres::{extension, role};

/// For functions that affect the whole server, whose databases may have other owners.
pub fn superuser_only(function: &'static str) -> Result<(), Error> {
    role::is_superuser().then_some(()).ok_or_else(|| {
        Error::of(DENIED, format!("must be superuser to call {function}"))
            .detail("The call affects all databases of the server.")
    })
}

/// For functions that affect one database: the owners of the extension and of the database, and members of these roles, may call
/// them. After a superuser has restored a dump, the extension is the superuser's. Returns the owner whose privileges the caller has, or
/// None if the extension does not exist, in which case only superusers may call.
pub fn owner_only(action: &str) -> Result<Option<pgrx::pg_sys::Oid>, Error> {
    let owner = extension::find(c"flake").map(|extension| extension.owner);
    if owner.is_none() && role::is_superuser() {
        return Ok(None);
    }
    let owners = owner.into_iter().flat_map(|owner| [Some(owner), role::owner_of_database()]).flatten();
    owners.clone().find(|&owner| role::has_privileges_of(owner)).map(Some).ok_or_else(|| {
        let mut names: Vec<_> = owners.map(|owner| format!("role \"{}\"", role::name(owner))).collect();
        names.dedup();
        Error::of(DENIED, format!("must be owner of extension flake or of the database to {action}"))
            .detail(format!("The owners: {}.", names.join(" and ")))
            .hint("Call it as a member of one of these roles.")
    })
}

/// For functions that change a layout or a key, as its owner. Event triggers then run as the owner, and find tables in the caller's
/// temporary schema if they name no other schema. So a caller without the owner's privileges could make the owner run code.
pub fn must_own(owner: pgrx::pg_sys::Oid, what: &str) -> Result<(), Error> {
    role::has_privileges_of(owner).then_some(()).ok_or_else(|| {
        Error::of(DENIED, format!("must be owner of {what}"))
            .detail(format!("The owner: role \"{}\".", role::name(owner)))
            .hint("Call it as a member of this role, or let a superuser change the owner by ALTER SERVER.")
    })
}

/// For functions that show data of the whole server.
pub fn monitor_only(what: &'static str) -> Result<(), Error> {
    role::is_monitor().then_some(()).ok_or_else(|| {
        Error::of(DENIED, format!("permission denied for {what}"))
            .detail("Only members of pg_monitor see the whole server.")
            .hint("A superuser can GRANT pg_monitor to this role.")
    })
}
