//! Functions and operators that replace others in plans.
#![allow(unsafe_code, reason = "looks into the catalog")]

use std::ffi::CStr;

use pgrx::pg_sys;

/// The column of pg_proc with a function's OID.
const PROC_OID: i16 = 1;

/// Returns a function in a schema, if there is one that the current role may call. The role needs no privilege on the schema.
///
/// # Safety The catalog must be readable.
pub unsafe fn in_schema(schema: &CStr, name: &CStr, types: &[pg_sys::Oid]) -> Option<pg_sys::Oid> {
    // SAFETY: the lookups return an invalid OID for what does not exist.
    unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        let function = pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as _,
            PROC_OID,
            name.as_ptr().into(),
            pg_sys::buildoidvector(types.as_ptr(), types.len() as i32).into(),
            schema.into(),
            pg_sys::Datum::null(),
        );
        (function != pg_sys::InvalidOid && may_call(function)).then_some(function)
    }
}

/// Returns the operator of a B-tree strategy between values of a type.
///
/// # Safety
/// As for [`in_schema`].
pub unsafe fn operator(of: pg_sys::Oid, strategy: u32) -> Option<pg_sys::Oid> {
    // SAFETY: as for `in_schema`.
    unsafe {
        let operator = pg_sys::get_opfamily_member(btree_family(of), of, of, strategy as i16);
        (operator != pg_sys::InvalidOid).then_some(operator)
    }
}

/// Returns the family of operators by which B-trees order a type.
///
/// # Safety
/// As for [`in_schema`].
pub unsafe fn btree_family(of: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: the cache of types has a row for each, which stays.
    unsafe { (*pg_sys::lookup_type_cache(of, pg_sys::TYPECACHE_BTREE_OPFAMILY as i32)).btree_opf }
}

/// Returns whether the current role may call a function.
///
/// # Safety
/// As for [`in_schema`].
pub unsafe fn may_call(function: pg_sys::Oid) -> bool {
    let mode = pg_sys::ACL_EXECUTE as pg_sys::AclMode;
    // SAFETY: it looks the function and the role up in the catalog.
    unsafe {
        #[cfg(feature = "pg15")]
        let result = pg_sys::pg_proc_aclcheck(function, pg_sys::GetUserId(), mode);
        #[cfg(not(feature = "pg15"))]
        let result = pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, pg_sys::GetUserId(), mode);
        result == pg_sys::AclResult::ACLCHECK_OK
    }
}
