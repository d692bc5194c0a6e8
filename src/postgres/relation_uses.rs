//! Whether an index or a partition key contains a call. The planner finds it by the expression of a filter, so that filter must
//! stay as it is.
#![allow(unsafe_code, reason = "reads the relation cache")]

use pgrx::{PgList, pg_sys};

use super::expressions::{ColumnCall, is_call, strip_conversions};

/// Returns whether a column of an index or of the partition key is such a call. An index with the call inside a larger expression,
/// or in its condition, does not serve a filter by the call.
///
/// # Safety `rel` must be the planner's entry of the relation, which the planned query has locked.
pub unsafe fn is_used(relation: pg_sys::Oid, rel: &pg_sys::RelOptInfo, call: ColumnCall) -> bool {
    // SAFETY: as the caller promises. Everything opened is closed, after an error by PostgreSQL.
    unsafe {
        if let Some(scheme) = rel.part_scheme.as_ref()
            && (0..scheme.partnatts as usize).any(|n| has_column(*rel.partexprs.add(n), call))
        {
            return true;
        }
        let relation = pg_sys::table_open(relation, pg_sys::NoLock as i32);
        let indexes = pg_sys::RelationGetIndexList(relation);
        let is_used = PgList::<()>::from_pg(indexes).iter_oid().any(|index| indexed(index, call));
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
        is_used
    }
}

unsafe fn indexed(index: pg_sys::Oid, call: ColumnCall) -> bool {
    // SAFETY: the relation is locked, so its index exists.
    unsafe {
        let index = pg_sys::index_open(index, pg_sys::AccessShareLock as i32);
        let is_used = has_column(pg_sys::RelationGetIndexExpressions(index), call);
        pg_sys::index_close(index, pg_sys::AccessShareLock as i32);
        is_used
    }
}

/// Returns whether any column that is an expression is such a call.
unsafe fn has_column(expressions: *mut pg_sys::List, call: ColumnCall) -> bool {
    // SAFETY: these are expressions of the relation.
    unsafe {
        PgList::<pg_sys::Node>::from_pg(expressions).iter_ptr().any(|column| is_call(strip_conversions(column), call))
    }
}

/// Returns whether a relation, or a partition of it, is on another server.
///
/// # Safety The catalog must be readable.
pub unsafe fn is_foreign(relation: pg_sys::Oid) -> bool {
    // SAFETY: as the caller promises; what is opened is closed.
    unsafe {
        match pg_sys::get_rel_relkind(relation) as u8 {
            pg_sys::RELKIND_FOREIGN_TABLE => true,
            pg_sys::RELKIND_PARTITIONED_TABLE => {
                let table = pg_sys::table_open(relation, pg_sys::AccessShareLock as i32);
                let partitions = &*pg_sys::RelationGetPartitionDesc(table, true);
                let is_foreign = (0..partitions.nparts as usize).any(|n| is_foreign(*partitions.oids.add(n)));
                pg_sys::table_close(table, pg_sys::AccessShareLock as i32);
                is_foreign
            }
            _ => false,
        }
    }
}
