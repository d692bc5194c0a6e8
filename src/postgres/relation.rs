//! A table, or another relation.
#![allow(unsafe_code, reason = "asks PostgreSQL's caches")]

use std::ffi::CStr;

use pgrx::pg_sys;

/// Returns the relation of whose rows a type is; none of other types.
pub fn of_row_type(row: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: it looks the type up in the catalog.
    let relation = unsafe { pg_sys::get_typ_typrelid(row) };
    (relation != pg_sys::Oid::INVALID).then_some(relation)
}

/// Locks a relation as those who read it do, until the transaction ends.
pub fn lock_to_read(relation: pg_sys::Oid) {
    // SAFETY: it may wait, and be canceled.
    unsafe { pg_sys::LockRelationOid(relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE) }
}

/// Returns whether it is a table whose rows are stored here, itself or in its partitions.
pub fn is_table(relation: pg_sys::Oid) -> bool {
    // SAFETY: it looks the relation up in the catalog.
    let kind = unsafe { pg_sys::get_rel_relkind(relation) } as u8;
    matches!(kind, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE)
}

/// Returns whether row security decides which rows of a table the present role sees.
pub fn hides_rows(relation: pg_sys::Oid) -> bool {
    // SAFETY: it looks the relation and the role up in the catalog.
    unsafe {
        pg_sys::check_enable_rls(relation, pg_sys::Oid::INVALID, true)
            == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
    }
}

/// Returns its quoted name with that of its schema, in the encoding of the database; none if it has been dropped.
pub fn quoted_name(relation: pg_sys::Oid) -> Option<Vec<u8>> {
    // SAFETY: it looks the relation up in the catalog.
    let (schema, name) = unsafe { (pg_sys::get_rel_namespace(relation), pg_sys::get_rel_name(relation)) };
    if name.is_null() {
        return None;
    }
    // SAFETY: both are C strings.
    let name = unsafe { CStr::from_ptr(pg_sys::quote_identifier(name)) };
    Some([&quoted_schema(schema)?, &b"."[..], name.to_bytes()].concat())
}

/// Returns the quoted name of a schema, in the encoding of the database; none if it has been dropped.
pub fn quoted_schema(schema: pg_sys::Oid) -> Option<Vec<u8>> {
    // SAFETY: it looks the schema up in the catalog; the results are C strings.
    unsafe {
        let name = pg_sys::get_namespace_name(schema);
        (!name.is_null()).then(|| CStr::from_ptr(pg_sys::quote_identifier(name)).to_bytes().to_vec())
    }
}
