//! Roles: the caller's, the session's, and their privileges.
#![allow(unsafe_code, reason = "asks PostgreSQL")]

use std::ffi::CStr;

use pgrx::pg_sys;

use super::encoding::to_utf8_lossy;
use super::{local_settings, recovery};

/// Returns the current role.
pub fn present() -> pg_sys::Oid {
    // SAFETY: it reads a variable of this process.
    unsafe { pg_sys::GetUserId() }
}

/// Returns whether the current role is a superuser.
pub fn is_superuser() -> bool {
    // SAFETY: it looks the role up in the catalog.
    unsafe { pg_sys::superuser() }
}

/// Returns whether the current role has the privileges of another one: it is that role, a member of it, or a superuser.
pub fn has_privileges_of(role: pg_sys::Oid) -> bool {
    // SAFETY: it looks both roles up in the catalog.
    unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), role) }
}

/// Returns the owner of this session's database.
pub fn owner_of_database() -> Option<pg_sys::Oid> {
    let (cache, database) = (pg_sys::SysCacheIdentifier::DATABASEOID as _, recovery::database());
    // SAFETY: it looks the database up in the catalog, and copies a field of the row before it releases it.
    unsafe {
        let row = pg_sys::SearchSysCache1(cache, pg_sys::Oid::from(database).into());
        let found = !row.is_null();
        found.then(|| {
            let owner = (*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_database>()).datdba;
            pg_sys::ReleaseSysCache(row);
            owner
        })
    }
}

/// Returns whether the current role has the privileges of `pg_monitor`.
pub fn is_monitor() -> bool {
    has_privileges_of(pg_sys::Oid::from(pg_sys::ROLE_PG_MONITOR))
}

/// Returns whether the current role can see in pg_stat_activity what the sessions of another role do.
pub fn sees_activity_of(role: pg_sys::Oid) -> bool {
    has_privileges_of(pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_STATS)) || has_privileges_of(role)
}

/// Returns the name of a role; empty if it has been dropped.
pub fn name(role: pg_sys::Oid) -> String {
    // SAFETY: it returns a palloc'd C string or null.
    let name = unsafe { pg_sys::GetUserNameFromId(role, true).as_ref().map(|name| CStr::from_ptr(name)) };
    name.map(|name| to_utf8_lossy(name.to_bytes()).into_owned()).unwrap_or_default()
}

/// Calls `act` as another role, whose privileges the caller must have, with a search_path that the caller has not set, because event
/// triggers may look up functions by it. After an error, PostgreSQL restores the role and the setting at the end of the transaction
/// or subtransaction.
pub fn act_as<R>(role: pg_sys::Oid, act: impl FnOnce() -> R) -> R {
    let (mut present, mut context) = (pg_sys::Oid::INVALID, 0);
    let restricted = (pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION) as i32;
    // SAFETY: it sets variables of this process, and restores them.
    unsafe {
        pg_sys::GetUserIdAndSecContext(&raw mut present, &raw mut context);
        if present == role {
            return act();
        }
        assert!(has_privileges_of(role), "a role acts only as a role whose privileges it has");
        pg_sys::SetUserIdAndSecContext(role, context | restricted);
        let result = local_settings::with(&[(c"search_path", c"pg_catalog, pg_temp")], act);
        pg_sys::SetUserIdAndSecContext(present, context);
        result
    }
}
