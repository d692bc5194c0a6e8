//! The key of a table, by which its rows are taken: the column whose default makes its IDs.
#![allow(unsafe_code, reason = "reads what a query returns")]

use std::collections::HashMap;
use std::ffi::CStr;

use pgrx::prelude::*;

use crate::functions::check::calls::layout;
use crate::functions::layout_uses::functions;
use crate::postgres::extension::Extension;
use crate::postgres::node_tree::{LONGEST, Tree};
use crate::postgres::queries::Queries;

/// The columns of a table, $1, that have a default and that an index of all rows begins with: their quoted names, types, whether
/// that is sno of the schema $2, and their defaults; texts in bytes of the database's encoding.
const COLUMNS: &CStr = c"
    SELECT pg_catalog.convert_to(pg_catalog.quote_ident(a.attname::pg_catalog.text), pg_catalog.getdatabaseencoding()),
           a.atttypid,
           a.atttypid OPERATOR(pg_catalog.=) (SELECT t.oid FROM pg_catalog.pg_type t
                WHERE t.typname OPERATOR(pg_catalog.=) 'sno' AND t.typnamespace OPERATOR(pg_catalog.=) $2),
           pg_catalog.convert_to(d.adbin::pg_catalog.text, pg_catalog.getdatabaseencoding())
    FROM pg_catalog.pg_attrdef d JOIN pg_catalog.pg_attribute a
      ON a.attrelid OPERATOR(pg_catalog.=) d.adrelid AND a.attnum OPERATOR(pg_catalog.=) d.adnum
    WHERE d.adrelid OPERATOR(pg_catalog.=) $1 AND EXISTS (
        SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) i.indexrelid
        WHERE i.indrelid OPERATOR(pg_catalog.=) d.adrelid AND i.indkey[0] OPERATOR(pg_catalog.=) a.attnum
          AND i.indisvalid AND i.indpred IS NULL
          AND c.relam OPERATOR(pg_catalog.=) (SELECT m.oid FROM pg_catalog.pg_am m WHERE m.amname OPERATOR(pg_catalog.=) 'btree'))";

/// The type of the positions in a table, $1.
const LAST: &CStr = c"
    SELECT a.atttypid FROM pg_catalog.pg_attribute a
    WHERE a.attrelid OPERATOR(pg_catalog.=) $1 AND a.attname OPERATOR(pg_catalog.=) 'last' AND NOT a.attisdropped";

pub struct Key {
    /// Quoted, in the encoding of the database.
    pub column: Vec<u8>,
    pub kind: pg_sys::Oid,
    /// The layout of its IDs; none of a sno.
    pub layout: Option<String>,
}

/// Returns the key of a table; none if no column is one, or several are.
pub fn find(queries: &Queries, flake: Extension, table: pg_sys::Oid) -> Option<Key> {
    let functions = Spi::connect(|client| functions(client, flake.oid)).unwrap_or_else(|error| pgrx::error!("{error}"));
    let (columns, _) =
        queries.execute::<4>(COLUMNS, &[(pg_sys::OIDOID, table.into()), (pg_sys::OIDOID, flake.schema.into())]);
    let mut keys = columns.into_iter().filter_map(|[column, kind, is_sno, default]| {
        // SAFETY: the query returns columns of these types, and its rows live as long as the connection.
        let (column, kind, is_sno, default) = unsafe {
            (
                <&[u8]>::from_datum(column?, false)?,
                pg_sys::Oid::from_datum(kind?, false)?,
                bool::from_datum(is_sno?, false)?,
                <&[u8]>::from_datum(default?, false)?,
            )
        };
        let layout = made_by(&functions, default)?;
        let fits = if layout.is_some() { kind == pg_sys::INT8OID } else { is_sno };
        fits.then(|| Key { column: column.to_vec(), kind, layout })
    });
    keys.next().filter(|_| keys.next().is_none())
}

/// Returns the type of the positions in a table; none if it has none.
pub fn type_of_positions(queries: &Queries, table: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let (rows, _) = queries.execute::<1>(LAST, &[(pg_sys::OIDOID, table.into())]);
    // SAFETY: the query returns a column of this type.
    rows.first().and_then(|[kind]| unsafe { pg_sys::Oid::from_datum((*kind)?, false) })
}

/// The layout of the IDs that a default makes, none of a sno; none if it makes none, or of several layouts.
fn made_by(functions: &HashMap<u32, String>, default: &[u8]) -> Option<Option<String>> {
    if default.len() > LONGEST {
        return None;
    }
    let text = String::from_utf8_lossy(default);
    let tree = Tree::read(&text);
    let mut made =
        tree.nodes("FUNCEXPR").filter_map(|call| match functions.get(&tree.number(call, "funcid")?)?.as_str() {
            "flake_next" => Some(layout(&tree, call, 0).map(Some)),
            "sno_next" => Some(Some(None)),
            _ => None,
        });
    made.next().filter(|_| made.next().is_none())?
}
