//! Tables and other relations.
#![allow(unsafe_code, reason = "asks PostgreSQL's caches")]

use std::collections::BTreeSet;
use std::ffi::CStr;

use pgrx::{PgList, pg_sys};

use super::catalog::btree_family;
use super::memory::with_room;
use super::snapshot::LatestSnapshot;
use super::stored_trees::{Content, content};

/// Returns the relation whose row type this is, or None if it is another type.
pub fn of_row_type(row: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: it looks the type up in the catalog.
    let relation = unsafe { pg_sys::get_typ_typrelid(row) };
    (relation != pg_sys::Oid::INVALID).then_some(relation)
}

/// Locks a relation until the end of the transaction, as a query that reads it does.
pub fn lock_to_read(relation: pg_sys::Oid) {
    // SAFETY: it may wait, and be canceled.
    unsafe { pg_sys::LockRelationOid(relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE) }
}

/// Gives up a lock that was taken once to read a relation.
pub fn unlock_to_read(relation: pg_sys::Oid) {
    // SAFETY: the caller has taken it.
    unsafe { pg_sys::UnlockRelationOid(relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE) }
}

/// Discards everything that this session has cached from the catalog, including plans, as PostgreSQL does after it has missed
/// invalidation messages.
pub fn forget_all() {
    // SAFETY: relations may be open, and plans in use.
    unsafe { pg_sys::InvalidateSystemCaches() }
}

/// Processes the changes of relations up to now, which acquiring a lock again would not do. Returns a number that increases with
/// each change.
pub fn changes() -> u64 {
    // SAFETY: no relation is open here; the number is one of this process.
    unsafe {
        pg_sys::AcceptInvalidationMessages();
        pg_sys::SharedInvalidMessageCounter
    }
}

/// Returns whether a schema has a relation of this name.
pub fn exists(schema: pg_sys::Oid, name: &CStr) -> bool {
    // SAFETY: it looks the name up in the catalog.
    unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) != pg_sys::Oid::INVALID }
}

/// Returns whether there is a relation of this OID.
pub fn is_known(relation: pg_sys::Oid) -> bool {
    // SAFETY: it looks the relation up in the catalog.
    unsafe { pg_sys::get_rel_relkind(relation) != 0 }
}

/// Returns whether it is a table whose rows are stored on this server, in itself or in its partitions.
pub fn is_table(relation: pg_sys::Oid) -> bool {
    // SAFETY: it looks the relation up in the catalog.
    let kind = unsafe { pg_sys::get_rel_relkind(relation) } as u8;
    matches!(kind, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE)
}

/// Returns whether row security decides which rows of a table the current role can see.
pub fn hides_rows(relation: pg_sys::Oid) -> bool {
    // SAFETY: it looks the relation and the role up in the catalog.
    unsafe {
        pg_sys::check_enable_rls(relation, pg_sys::Oid::INVALID, true)
            == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
    }
}

/// Returns the columns of a table that a B-tree on all rows begins with, and their defaults, perhaps by their domains.
pub fn indexed_defaults(table: pg_sys::Oid) -> Vec<(i16, Content)> {
    // SAFETY: the table is locked; its cache entry is there until it is closed. A column that is indexed exists.
    unsafe {
        let relation = pg_sys::table_open(table, pg_sys::NoLock as i32);
        let indexes = PgList::<()>::from_pg(pg_sys::RelationGetIndexList(relation));
        let columns: BTreeSet<i16> = indexes.iter_oid().filter_map(|index| ordered_by(index)).collect();
        let default = |column: i16| content(pg_sys::build_column_default(relation, column.into()), table);
        let found = columns.into_iter().filter(|&column| column > 0).map(|column| (column, default(column))).collect();
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
        found
    }
}

/// Returns whether a locked table is a partition, or has or had partitions or children.
pub fn has_relatives(table: pg_sys::Oid) -> bool {
    // SAFETY: as above.
    unsafe {
        let relation = pg_sys::table_open(table, pg_sys::NoLock as i32);
        let own = (*relation).rd_rel;
        let has_relatives = (*own).relhassubclass || (*own).relispartition;
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
        has_relatives
    }
}

/// Returns the first column of an index on all rows, 0 for an expression. Returns None for an index that does not order all rows.
unsafe fn ordered_by(index: pg_sys::Oid) -> Option<i16> {
    // SAFETY: the index belongs to a locked table, and has at least one column.
    unsafe {
        let index = pg_sys::index_open(index, pg_sys::AccessShareLock as i32);
        let is_ordered = (*(*index).rd_rel).relam == pg_sys::BTREE_AM_OID
            && (*(*index).rd_index).indisvalid
            && pg_sys::RelationGetIndexPredicate(index).is_null();
        let column = is_ordered.then(|| (&raw const (*(*index).rd_index).indkey.values).cast::<i16>().read());
        pg_sys::index_close(index, pg_sys::AccessShareLock as i32);
        column
    }
}

/// Returns the number of a column, or 0 if the relation has no column of this name.
pub fn column(relation: pg_sys::Oid, name: &CStr) -> i16 {
    // SAFETY: it looks the column up in the catalog.
    unsafe { pg_sys::get_attnum(relation, name.as_ptr()) }
}

/// Raises the error that an UPDATE of the column would raise if the current role has no privilege for it.
pub fn require_update(relation: pg_sys::Oid, column: i16) {
    use pg_sys::AclResult::{ACLCHECK_NO_PRIV, ACLCHECK_OK};
    let (role, update) = (super::role::present(), pg_sys::ACL_UPDATE as pg_sys::AclMode);
    // SAFETY: it looks the privileges up in the catalog, and raises an error or does nothing.
    unsafe {
        if pg_sys::pg_class_aclcheck(relation, role, update) != ACLCHECK_OK
            && pg_sys::pg_attribute_aclcheck(relation, column, role, update) != ACLCHECK_OK
        {
            let kind = pg_sys::get_relkind_objtype(pg_sys::get_rel_relkind(relation));
            pg_sys::aclcheck_error(ACLCHECK_NO_PRIV, kind, pg_sys::get_rel_name(relation));
        }
    }
}

/// Returns the type of a column, or an invalid OID if the column does not exist.
pub fn type_of_column(relation: pg_sys::Oid, column: i16) -> pg_sys::Oid {
    // SAFETY: it looks the column up in the catalog.
    unsafe { pg_sys::get_atttype(relation, column) }
}

/// Returns the type below a domain, at any depth. Returns every other OID unchanged, even if it is not a type's.
pub fn base_type(of: pg_sys::Oid) -> pg_sys::Oid {
    if of == pg_sys::Oid::INVALID {
        return of;
    }
    // SAFETY: it looks the type up in the catalog.
    unsafe { pg_sys::getBaseType(of) }
}

/// Returns how many integers, from 0 on, an existing type holds exactly, or an element of it if it is an array.
pub fn integers(mut of: pg_sys::Oid, mut modifier: i32) -> u128 {
    // SAFETY: it looks the types up in the catalog.
    let of = unsafe {
        loop {
            of = pg_sys::getBaseTypeAndTypmod(of, &raw mut modifier);
            match pg_sys::get_element_type(of) {
                pg_sys::Oid::INVALID => break of,
                element => of = element,
            }
        }
    };
    // The modifier of such a type is 4 more than what is declared, of numeric the precision above 16 bits and the scale in 11.
    let declared = modifier - 4;
    let digits = match of {
        pg_sys::INT2OID => return 1 << 15,
        pg_sys::INT4OID => return 1 << 31,
        pg_sys::FLOAT4OID => return 1 << 24,
        pg_sys::FLOAT8OID => return 1 << 53,
        pg_sys::NUMERICOID if modifier >= 4 => match (declared << 21) >> 21 {
            // It rounds to tens, hundreds and so on.
            ..0 => 0,
            scale => (declared >> 16) - scale,
        },
        pg_sys::BPCHAROID | pg_sys::VARCHAROID if modifier >= 4 => declared,
        _ => return u128::MAX,
    };
    10_u128.saturating_pow(digits.max(0) as u32)
}

/// Returns the quoted name of an existing column, in the encoding of the database.
pub fn quoted_column(relation: pg_sys::Oid, column: i16) -> Vec<u8> {
    // SAFETY: it looks the column up in the catalog; the results are C strings.
    unsafe {
        let name = pg_sys::quote_identifier(pg_sys::get_attname(relation, column, false));
        CStr::from_ptr(name).to_bytes().to_vec()
    }
}

/// Returns the quoted name of a relation with its schema, in the encoding of the database, or None if it was dropped.
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

/// Returns the quoted name of a schema, in the encoding of the database, or None if it was dropped.
pub fn quoted_schema(schema: pg_sys::Oid) -> Option<Vec<u8>> {
    // SAFETY: it looks the schema up in the catalog; the results are C strings.
    unsafe {
        let name = pg_sys::get_namespace_name(schema);
        (!name.is_null()).then(|| CStr::from_ptr(pg_sys::quote_identifier(name)).to_bytes().to_vec())
    }
}

/// Returns the family of operators by which B-trees order integers.
pub fn integer_family() -> pg_sys::Oid {
    // SAFETY: the type exists.
    unsafe { btree_family(pg_sys::INT8OID) }
}

/// Returns the greatest value as `greatest_values` does, or None inside if there is none.
pub fn greatest_from(table: pg_sys::Oid, index: pg_sys::Oid, column: i16, bound: i64) -> Option<Option<i64>> {
    greatest_values(table, index, column, bound, 1).map(|values| values.first().copied())
}

/// Returns so many of the greatest values from a bound on of a bigint column that an index begins with, the greatest one first, among
/// all rows that are committed now. Returns None if somebody changes the table or the index. It keeps no lock that it did not find.
///
/// A query would run code of the table's owner with the caller's privileges: to plan it, PostgreSQL calls functions in expressions
/// of the table's indexes. This scan calls only the comparison of integers.
pub fn greatest_values(
    table: pg_sys::Oid,
    index: pg_sys::Oid,
    column: i16,
    bound: i64,
    most: usize,
) -> Option<Vec<i64>> {
    if base_type(type_of_column(table, column)) != pg_sys::INT8OID {
        return None;
    }
    with_lock(table, |table| {
        with_lock(index, |index| {
            // SAFETY: the relations are locked while they are open; the index orders bigints.
            unsafe {
                let (mut key, from) = (pg_sys::ScanKeyData::default(), pg_sys::BTGreaterEqualStrategyNumber);
                pg_sys::ScanKeyInit(&raw mut key, column, from as u16, pg_sys::F_INT8GE.into(), bound.into());
                let _latest = LatestSnapshot::take();
                let is_descending = *(*index).rd_indoption & pg_sys::INDOPTION_DESC as i16 != 0;
                let scan =
                    pg_sys::systable_beginscan_ordered(table, index, pg_sys::GetActiveSnapshot(), 1, &raw mut key);
                let direction = if is_descending {
                    pg_sys::ScanDirection::ForwardScanDirection
                } else {
                    pg_sys::ScanDirection::BackwardScanDirection
                };
                let mut values = with_room(most);
                while values.len() < most {
                    let row = pg_sys::systable_getnext_ordered(scan, direction);
                    if row.is_null() {
                        break;
                    }
                    let mut is_null = false;
                    let value = pg_sys::heap_getattr(row, column.into(), (*table).rd_att, &mut is_null);
                    values.push(value.value() as i64);
                }
                pg_sys::systable_endscan_ordered(scan);
                values
            }
        })
    })
    .flatten()
}

/// Calls `act` with a relation that is open, unless it is gone or somebody holds it.
fn with_lock<R>(relation: pg_sys::Oid, act: impl FnOnce(pg_sys::Relation) -> R) -> Option<R> {
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: what is opened is closed, and so is the lock; after an error, PostgreSQL does both.
    unsafe {
        if !pg_sys::ConditionalLockRelationOid(relation, lock) {
            return None;
        }
        let open = pg_sys::try_relation_open(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
        let result = (!open.is_null()).then(|| act(open));
        if !open.is_null() {
            pg_sys::relation_close(open, pg_sys::NoLock as pg_sys::LOCKMODE);
        }
        pg_sys::UnlockRelationOid(relation, lock);
        result
    }
}
