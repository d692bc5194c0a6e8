//! PostgreSQL's sequences: their parameters, their owners, and PostgreSQL's own functions.
#![allow(unsafe_code, reason = "reads the catalog and calls PostgreSQL's functions of sequences")]

use std::ffi::{CStr, CString, c_char};
use std::sync::atomic::{AtomicU64, Ordering};

use pgrx::pg_guard;
use pgrx::pg_sys::{self, Oid, SysCacheIdentifier::*};

use super::call::Function;
use super::encoding::to_utf8_lossy;

unsafe extern "C-unwind" {
    // pgrx's own declarations are guarded, which takes longer than these functions.
    fn nextval_internal(sequence: Oid, check_permissions: bool) -> i64;
    fn currval_oid(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
    fn setval_oid(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
    fn setval3_oid(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
    fn lastval(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
    fn DirectFunctionCall1Coll(function: Function, collation: Oid, one: pg_sys::Datum) -> pg_sys::Datum;
    fn DirectFunctionCall2Coll(
        function: Function,
        collation: Oid,
        one: pg_sys::Datum,
        two: pg_sys::Datum,
    ) -> pg_sys::Datum;
    fn DirectFunctionCall3Coll(
        function: Function,
        collation: Oid,
        one: pg_sys::Datum,
        two: pg_sys::Datum,
        three: pg_sys::Datum,
    ) -> pg_sys::Datum;
    fn PreventCommandIfParallelMode(command: *const c_char);
}

/// The parameters that ALTER SEQUENCE changes.
#[derive(Clone, Copy)]
pub struct Parameters {
    pub start: i64,
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cache: i64,
    pub cycles: bool,
}

/// Returns the parameters of a sequence, or None if the relation is none.
pub fn parameters(sequence: Oid) -> Option<Parameters> {
    // SAFETY: it looks the sequence up in the catalog, and copies the row before it releases it.
    unsafe {
        let row = pg_sys::SearchSysCache1(SEQRELID as _, sequence.into());
        (!row.is_null()).then(|| {
            let form = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_sequence>();
            let found = Parameters {
                start: form.seqstart,
                increment: form.seqincrement,
                min: form.seqmin,
                max: form.seqmax,
                cache: form.seqcache,
                cycles: form.seqcycle,
            };
            pg_sys::ReleaseSysCache(row);
            found
        })
    }
}

/// Returns the name of a relation for messages, as PostgreSQL's own have it.
pub fn name(sequence: Oid) -> String {
    // SAFETY: it looks the relation up in the catalog; the result is a C string or null.
    let name = unsafe { pg_sys::get_rel_name(sequence).as_ref().map(|name| CStr::from_ptr(name)) };
    name.map(|name| to_utf8_lossy(name.to_bytes()).into_owned()).unwrap_or_default()
}

/// Locks a sequence as nextval() does: until the end of the transaction, also if a subtransaction is rolled back. Nobody can alter it
/// meanwhile.
pub fn lock(sequence: Oid) {
    // SAFETY: it may wait, and be canceled; after an error, PostgreSQL restores the owner of resources.
    unsafe {
        let own = pg_sys::CurrentResourceOwner;
        pg_sys::CurrentResourceOwner = pg_sys::TopTransactionResourceOwner;
        pg_sys::LockRelationOid(sequence, pg_sys::RowExclusiveLock as pg_sys::LOCKMODE);
        pg_sys::CurrentResourceOwner = own;
    }
}

/// Locks a sequence, so that no other transaction uses it until this one ends. The caller must own the sequence.
pub fn lock_alone(sequence: Oid) {
    // SAFETY: it may wait, and be canceled.
    unsafe { pg_sys::LockRelationOid(sequence, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE) }
}

/// Where a relation is in the catalog, whatever name its schema has.
pub struct Place {
    schema: Oid,
    name: CString,
}

impl Place {
    /// Returns the place of a relation that exists.
    pub fn of(relation: Oid) -> Option<Self> {
        // SAFETY: it looks the relation up in the catalog; its name is a C string or null.
        unsafe {
            let name = pg_sys::get_rel_name(relation).as_ref().map(|name| CStr::from_ptr(name).to_owned())?;
            Some(Self { schema: pg_sys::get_rel_namespace(relation), name })
        }
    }

    /// Returns the relation that is there.
    pub fn relation(&self) -> Option<Oid> {
        // SAFETY: it looks the name up in the catalog.
        let found = unsafe { pg_sys::get_relname_relid(self.name.as_ptr(), self.schema) };
        (found != Oid::INVALID).then_some(found)
    }
}

/// A privilege on a sequence.
#[derive(Clone, Copy, PartialEq)]
pub enum Privilege {
    Next,
    Current,
    Set,
}

/// Returns whether the current role has a privilege on a sequence. A role that may insert into the table that owns a sequence, or into
/// some of its columns, may use the next number, as with an identity column.
pub fn is_allowed(sequence: Oid, privilege: Privilege) -> bool {
    let modes = match privilege {
        Privilege::Next => pg_sys::ACL_USAGE | pg_sys::ACL_UPDATE,
        Privilege::Current => pg_sys::ACL_USAGE | pg_sys::ACL_SELECT,
        Privilege::Set => pg_sys::ACL_UPDATE,
    };
    let role = super::role::present();
    // SAFETY: it looks the privileges up in the catalog.
    unsafe {
        let has = |relation, mode| {
            pg_sys::pg_class_aclcheck(relation, role, mode as pg_sys::AclMode) == pg_sys::AclResult::ACLCHECK_OK
        };
        has(sequence, modes)
            || privilege == Privilege::Next
                && owner(sequence).is_some_and(|table| {
                    let insert = pg_sys::ACL_INSERT;
                    has(table, insert)
                        || pg_sys::pg_attribute_aclcheck_all(table, role, insert as _, pg_sys::AclMaskHow::ACLMASK_ANY)
                            == pg_sys::AclResult::ACLCHECK_OK
                })
    }
}

/// Returns the table with the column that owns a sequence: OWNED BY, or as its identity.
pub fn owner(sequence: Oid) -> Option<Oid> {
    let (mut table, mut column) = (Oid::INVALID, 0);
    // SAFETY: it looks the dependencies up in the catalog, and fills in both.
    let is_owned = unsafe {
        [pg_sys::DependencyType::DEPENDENCY_AUTO, pg_sys::DependencyType::DEPENDENCY_INTERNAL]
            .into_iter()
            .any(|kind| pg_sys::sequenceIsOwned(sequence, kind as c_char, &raw mut table, &raw mut column))
    };
    is_owned.then_some(table)
}

/// Returns the next number of a sequence, as nextval() does, after a check of the privilege or without one.
///
/// # Safety
/// Errors jump over the frames of the caller, up to the entry point, so these may hold nothing that must be dropped.
pub unsafe fn native_next(sequence: Oid, checks: bool) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { nextval_internal(sequence, checks) }
}

/// Returns the current number of a sequence, as currval() does.
///
/// # Safety
/// As for [`native_next`].
pub unsafe fn native_current(sequence: Oid) -> i64 {
    // SAFETY: as the caller promises; the function takes an OID.
    unsafe { DirectFunctionCall1Coll(currval_oid, Oid::INVALID, sequence.into()).value() as i64 }
}

/// Returns what lastval() does.
///
/// # Safety
/// As for [`native_next`].
pub unsafe fn native_last() -> i64 {
    // SAFETY: as the caller promises; the function looks at no argument.
    unsafe { DirectFunctionCall1Coll(lastval, Oid::INVALID, pg_sys::Datum::null()).value() as i64 }
}

/// Sets a sequence, as setval() does, with two arguments or three.
///
/// # Safety
/// As for [`native_next`].
pub unsafe fn native_set(sequence: Oid, value: i64, is_called: Option<bool>) {
    let none = Oid::INVALID;
    // SAFETY: as the caller promises; the functions take an OID, a bigint and a boolean.
    unsafe {
        match is_called {
            None => DirectFunctionCall2Coll(setval_oid, none, sequence.into(), value.into()),
            Some(called) => DirectFunctionCall3Coll(setval3_oid, none, sequence.into(), value.into(), called.into()),
        };
    }
}

/// Raises the error of a command that parallel workers, and the session that has started them, cannot run.
///
/// # Safety
/// As for [`native_next`].
pub unsafe fn forbid_in_parallel(command: &CStr) {
    // SAFETY: as the caller promises.
    unsafe { PreventCommandIfParallelMode(command.as_ptr()) }
}

/// Returns a number that differs between the transactions of this session.
#[inline]
pub fn transaction() -> u32 {
    // SAFETY: a session has its process.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let number = (*pg_sys::MyProc).lxid;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        let number = (*pg_sys::MyProc).vxid.lxid;
        number
    }
}

/// How many changes of sequences and of privileges this session has been told of.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Returns a number that changes with the parameters and names of sequences, and with the privileges on them.
#[inline]
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

/// Subscribes to these changes.
pub fn subscribe() {
    #[pg_guard]
    unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
        CHANGES.fetch_add(1, Ordering::Relaxed);
    }
    for cache in [SEQRELID, RELOID, ATTNUM, AUTHOID, AUTHMEMMEMROLE, DATABASEOID] {
        // SAFETY: the callback lives as long as the library, which is never unloaded.
        unsafe { pg_sys::CacheRegisterSyscacheCallback(cache as _, Some(changed), pg_sys::Datum::from(0)) };
    }
}

/// Returns the relation of this name in a schema.
pub fn find(schema: &CStr, name: &CStr) -> Option<Oid> {
    // SAFETY: it looks both names up in the catalog.
    let found = unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        if schema == Oid::INVALID { schema } else { pg_sys::get_relname_relid(name.as_ptr(), schema) }
    };
    (found != Oid::INVALID).then_some(found)
}
