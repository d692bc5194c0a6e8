//! The keys that this session has used, with their expanded secrets. They are valid as long as the catalog rows of the keys, of
//! roles, of memberships and of databases do not change.
#![allow(unsafe_code, reason = "subscribes to PostgreSQL's invalidations, asks for privileges")]

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

use flake_core::seal::Ranges;
use pgrx::PgSqlErrorCode::*;
use pgrx::pg_guard;
use pgrx::pg_sys::{self, Oid, SysCacheIdentifier::*};
use pgrx::spi::quote_identifier;

use super::{find, unknown};
use crate::error::{Error, OrRaise};
use crate::postgres::role::present;

/// How many changes this session has been told of.
static CATALOG_VERSION: AtomicU64 = AtomicU64::new(0);

/// A key, and the role that was allowed to use it.
struct Known {
    name: String,
    role: Oid,
    ranges: Ranges,
}

/// How many keys a session remembers.
const MAX_KEYS: usize = 100;

thread_local! {
    /// The keys found in this version of the catalog. It is never dropped; see `layouts`.
    static KNOWN: RefCell<(u64, ManuallyDrop<Vec<Known>>)> = const { RefCell::new((0, ManuallyDrop::new(Vec::new()))) };
}

/// The caches that the right to a key and its secrets depend on. The owner of the database is a member of pg_database_owner.
const CACHES: &[i32] = &[
    FOREIGNSERVEROID as i32,
    FOREIGNDATAWRAPPEROID as i32,
    USERMAPPINGOID as i32,
    AUTHOID as i32,
    AUTHMEMMEMROLE as i32,
    DATABASEOID as i32,
];

/// Subscribes to invalidations of these.
pub fn subscribe() {
    #[pg_guard]
    unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
        CATALOG_VERSION.fetch_add(1, Ordering::Relaxed);
    }
    for &cache in CACHES {
        // SAFETY: the callback lives as long as the library, which is never unloaded.
        unsafe { pg_sys::CacheRegisterSyscacheCallback(cache, Some(changed), pg_sys::Datum::from(0)) };
    }
}

/// Calls `act` with the key of this name. The current role must have USAGE on it.
pub fn with<R>(name: &[u8], act: impl Fn(&str, &Ranges) -> R) -> R {
    // SAFETY: every lookup in the catalog does this. A long statement must learn of a rotation before IDs reach the new range.
    unsafe { pg_sys::AcceptInvalidationMessages() };
    let role = present();
    let version = CATALOG_VERSION.load(Ordering::Relaxed);
    let of_known = || {
        KNOWN.with_borrow(|(of, known)| {
            let key = known.iter().find(|key| key.role == role && key.name.as_bytes() == name)?;
            (*of == version).then(|| act(&key.name, &key.ranges))
        })
    };
    of_known().unwrap_or_else(|| {
        let key = look_up(name, role).or_raise();
        let result = act(&key.name, &key.ranges);
        KNOWN.with_borrow_mut(|(of, known)| {
            // For each key, only the last role that used it is remembered.
            known.retain(|other| *of == version && other.name != key.name);
            if known.len() == MAX_KEYS {
                known.clear();
            }
            *of = version;
            known.push(key);
        });
        result
    })
}

#[cold]
fn look_up(name: &[u8], role: Oid) -> Result<Known, Error> {
    let key = find(name).ok_or_else(|| unknown(name))?;
    if !may_use(key.server, role) {
        return Err(Error::of(ERRCODE_INSUFFICIENT_PRIVILEGE, format!("permission denied for key \"{}\"", key.name))
            .detail("Public IDs are made and read by roles that have USAGE on the foreign server of this name.")
            .hint(format!(
                "The key's owner can grant it: GRANT USAGE ON FOREIGN SERVER {} TO …",
                quote_identifier(&key.name)
            )));
    }
    Ok(Known { ranges: key.ranges()?, name: key.name, role })
}

fn may_use(server: Oid, role: Oid) -> bool {
    let usage = pg_sys::ACL_USAGE as pg_sys::AclMode;
    // SAFETY: it looks the privilege up in the catalog.
    let result = unsafe {
        #[cfg(feature = "pg15")]
        let result = pg_sys::pg_foreign_server_aclcheck(server, role, usage);
        #[cfg(not(feature = "pg15"))]
        let result = pg_sys::object_aclcheck(pg_sys::ForeignServerRelationId, server, role, usage);
        result
    };
    result == pg_sys::AclResult::ACLCHECK_OK
}
