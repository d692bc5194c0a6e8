//! Columns that expressions are, through queries and views.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use pgrx::prelude::*;
use pgrx::spi::SpiError;

use super::calls::{Column, Origin, origin};
use crate::postgres::node_tree::{LONGEST, Place, Tree};

/// How many queries a column is followed through.
const DEEPEST: usize = 50;

/// The query of a view, $1, up to a length, $2, in bytes of the database's encoding.
const VIEW: &str = "
    SELECT pg_catalog.substr(pg_catalog.convert_to(ev_action::pg_catalog.text, pg_catalog.getdatabaseencoding()), 1, $2)
    FROM pg_catalog.pg_rewrite
    WHERE ev_class OPERATOR(pg_catalog.=) $1 AND rulename OPERATOR(pg_catalog.=) '_RETURN'";

/// The views that were read: each once, however many calls are above it, and without their trees.
#[derive(Default)]
pub struct Views(HashMap<u32, HashMap<i16, Way>>);

/// The way out of a tree, to a column of a table or view.
#[derive(Clone, Copy)]
struct Way {
    queries: usize,
    end: Origin,
}

impl Views {
    /// The column of a table that an expression is; `table` is the one of variables outside of queries.
    pub fn column(&mut self, tree: &Tree<'_>, at: Place, table: u32) -> Result<Option<Column>, SpiError> {
        let (mut next, mut queries) = (way(tree, at, table), 0);
        while let Some(way) = next {
            check_for_interrupts!();
            queries += way.queries;
            next = match way.end {
                Origin::View(view, number) if queries <= DEEPEST => self.way(view, number)?,
                Origin::Table(column) if queries <= DEEPEST => return Ok(Some(column)),
                _ => None,
            };
        }
        Ok(None)
    }

    /// The way from a column of a view.
    fn way(&mut self, view: u32, number: i16) -> Result<Option<Way>, SpiError> {
        let columns = match self.0.entry(view) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(unread) => unread.insert(ways(view)?),
        };
        Ok(columns.get(&number).copied())
    }
}

/// The ways from the columns of a view. A connection of its own gives the rows' memory back, and a copy of Rust's the text's:
/// pgrx leaves one of PostgreSQL's until the transaction ends.
fn ways(view: u32) -> Result<HashMap<i16, Way>, SpiError> {
    Spi::connect(|client| {
        let mut rows = client.select(VIEW, Some(1), &[pg_sys::Oid::from(view).into(), (LONGEST as i32).into()])?;
        let text = rows.next().map(|row| row.get::<Vec<u8>>(1)).transpose()?.flatten().unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let tree = Tree::read(&text);
        let columns = tree.nodes("QUERY").next().into_iter().flat_map(|query| tree.list(query, "targetList"));
        Ok(columns
            .filter_map(|column| Some((tree.number(column, "resno")?, way(&tree, tree.field(column, "expr")?, 0)?)))
            .collect())
    })
}

fn way(tree: &Tree<'_>, mut at: Place, table: u32) -> Option<Way> {
    for queries in 1..=DEEPEST {
        match origin(tree, at, table)? {
            Origin::Expression(below) => at = below,
            end => return Some(Way { queries, end }),
        }
    }
    None
}
