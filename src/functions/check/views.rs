//! Columns that expressions are, through queries and views.

#![allow(unsafe_code, reason = "reads what queries return")]

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::CStr;

use pgrx::prelude::*;

use super::calls::{Column, Origin, origin};
use crate::postgres::node_tree::{LONGEST, MOST, Place, Tree};
use crate::postgres::queries::{Queries, bytes};

/// How many queries a column is followed through.
const DEEPEST: usize = 50;

/// The query of a view, $1, if it is not longer than $2, in bytes of the database's encoding.
const VIEW: &CStr = c"
    SELECT CASE WHEN pg_catalog.octet_length(ev_action::pg_catalog.text)::pg_catalog.int8 OPERATOR(pg_catalog.<=) $2
                THEN pg_catalog.convert_to(ev_action::pg_catalog.text, pg_catalog.getdatabaseencoding()) END
    FROM pg_catalog.pg_rewrite
    WHERE ev_class OPERATOR(pg_catalog.=) $1 AND rulename OPERATOR(pg_catalog.=) '_RETURN'";

/// The views that were read: each once, however many calls are above it, and without their trees.
pub struct Views<'a> {
    queries: &'a Queries,
    read: HashMap<u32, HashMap<i16, Way>>,
    /// How many bytes of trees may still be read.
    left: usize,
}

/// The way out of a tree, to a column of a table or view.
#[derive(Clone, Copy)]
struct Way {
    queries: usize,
    end: Origin,
}

impl<'a> Views<'a> {
    pub fn new(queries: &'a Queries) -> Self {
        Self { queries, read: HashMap::new(), left: MOST }
    }

    /// The column of a table that an expression is; `table` is the one of variables outside of queries.
    pub fn column(&mut self, tree: &Tree<'_>, at: Place, table: u32) -> Option<Column> {
        let (mut next, mut queries) = (way(tree, at, table), 0);
        while let Some(way) = next {
            check_for_interrupts!();
            queries += way.queries;
            next = match way.end {
                Origin::View(view, number) if queries <= DEEPEST => self.way(view, number),
                Origin::Table(column) if queries <= DEEPEST => return Some(column),
                _ => None,
            };
        }
        None
    }

    /// The way from a column of a view.
    fn way(&mut self, view: u32, number: i16) -> Option<Way> {
        let columns = match self.read.entry(view) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(unread) => unread.insert(ways(self.queries, view, &mut self.left)),
        };
        columns.get(&number).copied()
    }
}

/// The ways from the columns of a view.
fn ways(queries: &Queries, view: u32, left: &mut usize) -> HashMap<i16, Way> {
    let mut ways = HashMap::new();
    let longest = LONGEST.min(*left);
    let parameters = [(pg_sys::OIDOID, pg_sys::Datum::from(view)), (pg_sys::INT8OID, longest.into())];
    queries.each::<1>(VIEW, &parameters, |&[tree]| {
        // SAFETY: the query returns a column of this type.
        let text = String::from_utf8_lossy(unsafe { bytes(tree) }.unwrap_or_default());
        *left -= text.len().min(*left);
        let tree = Tree::read(&text);
        let columns = tree.nodes("QUERY").next().into_iter().flat_map(|query| tree.list(query, "targetList"));
        ways.extend(
            columns.filter_map(|of| Some((tree.number(of, "resno")?, way(&tree, tree.field(of, "expr")?, 0)?))),
        );
    });
    ways
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
