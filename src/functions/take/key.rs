//! The key of a table, by which its rows are taken: the column whose default makes its IDs.

use pgrx::pg_sys;

use crate::functions::check::calls::layout;
use crate::postgres::extension::Extension;
use crate::postgres::node_tree::{LONGEST, Tree};
use crate::postgres::relation;

pub struct Key {
    /// Quoted, in the encoding of the database.
    pub column: Vec<u8>,
    pub kind: pg_sys::Oid,
    /// The layout of its IDs; none of a sno.
    pub layout: Option<String>,
}

/// Returns the key of a table, which is locked; none if no column is one, or several are.
pub fn find(flake: Extension, table: pg_sys::Oid) -> Option<Key> {
    let mut keys = relation::indexed_defaults(table).into_iter().filter_map(|(column, default)| {
        let layout = made_by(flake, &default)?;
        let kind = relation::type_of_column(table, column);
        let fits = if layout.is_some() { kind == pg_sys::INT8OID } else { Some(kind) == flake.type_of_name(c"sno") };
        fits.then(|| Key { column: relation::quoted_column(table, column), kind, layout })
    });
    keys.next().filter(|_| keys.next().is_none())
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
