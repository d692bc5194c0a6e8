//! The key of a table for flake_take: the column whose default makes IDs.
#![allow(unsafe_code, reason = "reads what a query returns")]

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::functions::layout_uses::layout;
use crate::postgres::extension::Extension;
use crate::postgres::queries::Queries;
use crate::postgres::relation;
use crate::postgres::stored_trees::{Content, Reader};

/// The defaults of column $2 of table $1 in all relations that rows are inserted through: its partitions and children, and the
/// tables that it is a partition of.
const DEFAULTS: &CStr = c"
    WITH RECURSIVE below(oid) AS (
        SELECT $1 UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN below ON i.inhparent OPERATOR(pg_catalog.=) below.oid
    ), used(oid) AS (
        SELECT oid FROM below UNION SELECT relid::pg_catalog.oid FROM pg_catalog.pg_partition_ancestors($1::pg_catalog.regclass)
    )
    SELECT COALESCE(d.adbin, t.typdefaultbin)::pg_catalog.text
    FROM used JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) used.oid
      JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) a.atttypid
      LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid OPERATOR(pg_catalog.=) a.attrelid AND d.adnum OPERATOR(pg_catalog.=) a.attnum
    WHERE a.attname OPERATOR(pg_catalog.=) (SELECT k.attname FROM pg_catalog.pg_attribute k
        WHERE k.attrelid OPERATOR(pg_catalog.=) $1 AND k.attnum OPERATOR(pg_catalog.=) $2)";

#[derive(PartialEq, Eq)]
pub struct Key {
    /// The quoted name, in the encoding of the database.
    pub column: Vec<u8>,
    /// bigint or sno, even if the column's type is a domain over it.
    pub kind: pg_sys::Oid,
    /// The layout of its IDs, or None for snos.
    pub layout: Option<String>,
}

/// Returns the key of a locked table. Returns None if no column or more than one is a key, or if rows are inserted through a
/// relation that may make IDs of another layout than the one that the watermark is compared with.
pub fn find(queries: &Queries, flake: Extension, table: pg_sys::Oid) -> Option<Key> {
    let mut keys = relation::indexed_defaults(table).into_iter().filter_map(|(column, default)| {
        let layout = <[_; 1]>::try_from(made(flake, &default)).ok().and_then(|[made]| made)?;
        let kind = relation::base_type(relation::type_of_column(table, column));
        let fits = if layout.is_some() { kind == pg_sys::INT8OID } else { Some(kind) == flake.type_of_name(c"sno") };
        fits.then_some((column, kind, layout))
    });
    let (column, kind, layout) = keys.next().filter(|_| keys.next().is_none())?;
    (!is_mixed(queries, flake, table, column, &layout)).then(|| Key {
        column: relation::quoted_column(table, column),
        kind,
        layout,
    })
}

/// Whether another relation may make IDs of another layout for rows of this table.
fn is_mixed(queries: &Queries, flake: Extension, table: pg_sys::Oid, column: i16, layout: &Option<String>) -> bool {
    if !relation::has_relatives(table) {
        return false;
    }
    let (mut is_mixed, mut reader) = (false, Reader::new());
    queries.each::<1>(DEFAULTS, &[(pg_sys::OIDOID, table.into()), (pg_sys::INT2OID, column.into())], |&[default]| {
        let Some(default) = default else { return };
        // SAFETY: the query returns trees of the catalog.
        let default = unsafe { reader.read(default, pg_sys::Oid::INVALID) };
        is_mixed |=
            default.is_none_or(|default| made(flake, &default).iter().any(|made| made.as_ref() != Some(layout)));
    });
    is_mixed
}

/// Returns the layout of each call that makes IDs, `Some(None)` for snos, None if the layout is unknown.
fn made(flake: Extension, default: &Content) -> Vec<Option<Option<String>>> {
    let calls = default.calls.iter().filter_map(|call| match flake.name_of_function(call.function)?.as_str() {
        "flake_next" => Some(layout(call, 0).map(Some)),
        "sno_next" => Some(Some(None)),
        _ => None,
    });
    calls.collect()
}
