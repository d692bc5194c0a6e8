//! The key of a table, by which its rows are taken: the column whose default makes its IDs.
#![allow(unsafe_code, reason = "reads what a query returns")]

use std::ffi::CStr;

use pgrx::{FromDatum, pg_sys};

use crate::functions::check::calls::layout;
use crate::postgres::extension::Extension;
use crate::postgres::node_tree::{LONGEST, Tree};
use crate::postgres::queries::Queries;
use crate::postgres::relation;

/// The defaults of the column $2 in the partitions and children of a table, $1, in bytes of the database's encoding.
const BELOW: &CStr = c"
    WITH RECURSIVE below(oid) AS (
        SELECT inhrelid FROM pg_catalog.pg_inherits WHERE inhparent OPERATOR(pg_catalog.=) $1
        UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN below ON i.inhparent OPERATOR(pg_catalog.=) below.oid
    )
    SELECT pg_catalog.convert_to(d.adbin::pg_catalog.text, pg_catalog.getdatabaseencoding())
    FROM below JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) below.oid
      JOIN pg_catalog.pg_attrdef d ON d.adrelid OPERATOR(pg_catalog.=) a.attrelid AND d.adnum OPERATOR(pg_catalog.=) a.attnum
    WHERE a.attname OPERATOR(pg_catalog.=) (SELECT k.attname FROM pg_catalog.pg_attribute k
        WHERE k.attrelid OPERATOR(pg_catalog.=) $1 AND k.attnum OPERATOR(pg_catalog.=) $2)";

pub struct Key {
    /// Quoted, in the encoding of the database.
    pub column: Vec<u8>,
    pub kind: pg_sys::Oid,
    /// The layout of its IDs; none of a sno.
    pub layout: Option<String>,
}

/// Returns the key of a table, which is locked; none if no column is one, or several are, or if a partition or a child makes its
/// IDs of another layout, which the horizon would be compared with.
pub fn find(queries: &Queries, flake: Extension, table: pg_sys::Oid) -> Option<Key> {
    let mut keys = relation::indexed_defaults(table).into_iter().filter_map(|(column, default)| {
        let layout = made_by(flake, &default)?;
        let kind = relation::type_of_column(table, column);
        let fits = if layout.is_some() { kind == pg_sys::INT8OID } else { Some(kind) == flake.type_of_name(c"sno") };
        (fits && !is_mixed(queries, flake, table, column, &layout)).then(|| Key {
            column: relation::quoted_column(table, column),
            kind,
            layout,
        })
    });
    keys.next().filter(|_| keys.next().is_none())
}

/// Whether a partition or a child makes IDs of another layout.
fn is_mixed(queries: &Queries, flake: Extension, table: pg_sys::Oid, column: i16, layout: &Option<String>) -> bool {
    if !relation::has_children(table) {
        return false;
    }
    let of = [(pg_sys::OIDOID, table.into()), (pg_sys::INT2OID, column.into())];
    queries.execute::<1>(BELOW, &of).0.iter().any(|[default]| {
        // SAFETY: the query returns a column of this type, and its rows live as long as the connection.
        let default = default.and_then(|default| unsafe { <&[u8]>::from_datum(default, false) });
        let made = default.and_then(|default| made_by(flake, &String::from_utf8_lossy(default)));
        made.is_some_and(|other| other != *layout)
    })
}

/// The layout of the IDs that a default makes, none of a sno; none if it makes none, or of several layouts.
fn made_by(flake: Extension, default: &str) -> Option<Option<String>> {
    if default.len() > LONGEST {
        return None;
    }
    let tree = Tree::read(default);
    let mut made = tree.nodes("FUNCEXPR").filter_map(|call| {
        match flake.name_of_function(tree.number::<u32>(call, "funcid")?.into())?.as_str() {
            "flake_next" => Some(layout(&tree, call, 0).map(Some)),
            "sno_next" => Some(Some(None)),
            _ => None,
        }
    });
    made.next().filter(|_| made.next().is_none())?
}
