//! Some functions are not for every role. PUBLIC may execute every function nevertheless: so GRANT and REVOKE on all functions of a
//! schema succeed, and give nobody more. These functions check the caller's role themselves.

use super::variants::Error;
use crate::postgres::{extension, role};

/// For what belongs to the whole server, whose databases may have other owners.
pub fn superuser_only(function: &'static str) -> Result<(), Error> {
    if role::is_superuser() { Ok(()) } else { Err(Error::NotSuperuser { function }) }
}

/// For what belongs to the owner of the extension: the owner and members of that role may call. Returns the owner, or None if the
/// extension does not exist; then only superusers may call.
pub fn owner_only(function: &'static str) -> Result<Option<pgrx::pg_sys::Oid>, Error> {
    let owner = extension::find(c"flake").map(|extension| extension.owner);
    let may = owner.map_or_else(role::is_superuser, role::has_privileges_of);
    if may { Ok(owner) } else { Err(Error::NotOwner { function, owner: owner.map(role::name).unwrap_or_default() }) }
}

/// For what shows the whole server.
pub fn monitor_only(what: &'static str) -> Result<(), Error> {
    if role::is_monitor() { Ok(()) } else { Err(Error::NotMonitor { what }) }
}
