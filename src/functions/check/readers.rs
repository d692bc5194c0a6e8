//! Checks that this database reads IDs by the layout that their column's default makes them of, and that types are large enough for
//! them. It only reads the catalog and calls no function.

#![allow(unsafe_code, reason = "reads what queries return")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::CStr;

use pgrx::prelude::*;

use super::calls::{Column, argument, column, layout};
use super::finding::Finding;
use crate::functions::layout_uses::{Expression, each_expression, functions};
use crate::layouts::known;
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::extension::{self, Extension};
use crate::postgres::node_tree::{Place, Tree};
use crate::postgres::queries::{Queries, bytes};
use crate::postgres::relation;

/// How many findings are listed.
const MOST_NAMED: usize = 10;

/// Functions that decode their first argument. Text forms are left out, because every layout's text form is fine.
const READERS: &[&str] =
    &["flake_decode", "flake_timestamp", "flake_explain", "flake_node", "flake_cover", "flake_during"];
/// Functions that return bounds to compare IDs with.
const BOUNDS: &[&str] = &["flake_min", "flake_max"];

/// The name and type of column $2 of table $1.
const COLUMN: &CStr = c"
    SELECT pg_catalog.convert_to(
               pg_catalog.pg_describe_object('pg_catalog.pg_class'::pg_catalog.regclass, attrelid, attnum),
               pg_catalog.getdatabaseencoding()), atttypid
    FROM pg_catalog.pg_attribute WHERE attrelid OPERATOR(pg_catalog.=) $1 AND attnum OPERATOR(pg_catalog.=) $2";

/// The columns that foreign keys refer to, and the columns that refer to them.
const FOREIGN_KEYS: &CStr = c"
    SELECT f.confrelid, f.confkey[n], f.conrelid, f.conkey[n]
    FROM pg_catalog.pg_constraint f, pg_catalog.generate_subscripts(f.confkey, 1) n
    WHERE f.contype OPERATOR(pg_catalog.=) 'f' AND f.conparentid OPERATOR(pg_catalog.=) 0::pg_catalog.oid";

/// How the expressions of this database use layouts.
#[derive(Default)]
pub struct Uses {
    /// Names of layouts in column defaults and generated columns.
    pub named: BTreeSet<String>,
    /// Calls of `sno_next` in them, by the number of arguments.
    pub snos: BTreeSet<usize>,
    /// Columns whose default makes IDs, and the layout.
    made: BTreeMap<Column, String>,
    /// Columns that are read, with the layouts and the objects that read them.
    read: BTreeMap<Column, BTreeSet<(String, String)>>,
    /// Faults of these reads, as sentences.
    wrong: BTreeSet<String>,
    /// How many expressions were too long to be read.
    unread: usize,
}

impl Uses {
    pub fn of_this_database() -> Self {
        let mut uses = Self::default();
        if let Some(flake) = extension::find(c"flake") {
            Queries::run(|queries| {
                Catalog { queries, functions: functions(queries, flake) }.look(&mut uses, flake);
            });
        }
        uses
    }

    /// Reports columns that are read by another layout than the one of their default, or that are too small for it.
    pub fn readers(self) -> Finding {
        if self.wrong.is_empty() {
            let unread = match self.unread {
                0 => String::new(),
                unread => format!(" Expressions that are too long to be read: {unread}."),
            };
            return Finding::fine(format!("No column is read by another layout than its default names.{unread}"));
        }
        let more = self.wrong.len().saturating_sub(MOST_NAMED);
        let named =
            self.wrong.into_iter().take(MOST_NAMED).chain((more > 0).then(|| format!("There are {more} more.")));
        Finding::wrong(
            named.collect::<Vec<_>>().join(" "),
            "Name the layout of the column in each function that reads its IDs, and use columns of type bigint.",
        )
    }
}

struct Catalog<'a> {
    queries: &'a Queries,
    /// The names of flake's functions by their OIDs.
    functions: HashMap<u32, String>,
}

impl Catalog<'_> {
    /// Reads each expression that calls flake.
    fn look(&self, uses: &mut Uses, flake: Extension) {
        each_expression(self.queries, flake, |Expression { object, tree, table, column }| {
            let Some(tree) = tree else {
                uses.unread += 1;
                return;
            };
            let text = String::from_utf8_lossy(tree);
            let tree = Tree::read(&text);
            for call in tree.nodes("FUNCEXPR") {
                let function = tree.number(call, "funcid").and_then(|function| self.functions.get(&function));
                let Some(name) = function.map(String::as_str) else { continue };
                if let Some((column, by)) = read(&tree, call, name, table) {
                    uses.read.entry(column).or_default().insert((by, object.clone()));
                }
                let Some(column) = column else { continue };
                uses.named.extend(named_by(name).and_then(|number| layout(&tree, call, number)));
                match name {
                    "flake_next" => uses.made.extend(layout(&tree, call, 0).map(|of| ((table, column), of))),
                    "sno_next" => uses.snos.extend([tree.list(call, "args").count()]),
                    _ => {}
                }
            }
        });
        self.compare(uses);
        self.follow_foreign_keys(uses);
    }

    /// Compares each column whose default makes IDs with the calls that read it.
    fn compare(&self, uses: &mut Uses) {
        for (column, of) in &uses.made {
            let Some((name, bits)) = self.column(*column) else { continue };
            let layout = known(of.as_bytes());
            if layout.is_some_and(|layout| layout.width() > bits) {
                uses.wrong
                    .insert(format!("The type of {name} is too small for the IDs of {of} that its default makes."));
            }
            for (by, object) in uses.read.get(column).into_iter().flatten() {
                let is_same = layout.zip(known(by.as_bytes())).is_some_and(|(one, other)| one.same_bits(other));
                if !is_same && of != by {
                    uses.wrong
                        .insert(format!("The default of {name} makes IDs of {of}, but {object} reads them by {by}."));
                }
            }
        }
    }

    /// Checks the columns that refer to a column whose default makes IDs.
    fn follow_foreign_keys(&self, uses: &mut Uses) {
        self.queries.each::<4>(FOREIGN_KEYS, &[], |row| {
            check_for_interrupts!();
            let number = |column: usize| row[column].map_or(0, |number| number.value());
            let [key, reference] = [0, 2].map(|of| (number(of) as u32, number(of + 1) as i16));
            let Some(layout) = uses.made.get(&key).and_then(|of| known(of.as_bytes())) else { return };
            if let Some((name, bits)) = self.column(reference)
                && layout.width() > bits
            {
                let of = layout.name();
                uses.wrong.insert(format!("The type of {name} is too small for the IDs of {of} that it refers to."));
            }
        });
    }

    /// Returns the name of a column, and how many bits an integer of its type has.
    fn column(&self, (table, number): Column) -> Option<(String, u32)> {
        let parameters =
            [(pg_sys::OIDOID, pg_sys::Oid::from(table).into()), (pg_sys::INT2OID, pg_sys::Datum::from(number))];
        let mut found = None;
        self.queries.each::<2>(COLUMN, &parameters, |&[name, of]| {
            // SAFETY: the query returns a column of this type.
            let name = to_utf8_lossy(unsafe { bytes(name) }.unwrap_or_default()).into_owned();
            let bits = match relation::base_type(pg_sys::Oid::from(of.map_or(0, |of| of.value() as u32))) {
                pg_sys::INT2OID => 15,
                pg_sys::INT4OID => 31,
                pg_sys::FLOAT4OID => 24,
                pg_sys::FLOAT8OID => 53,
                _ => u32::MAX,
            };
            found = Some((name, bits));
        });
        found
    }
}

/// Returns the column that a call reads or returns a bound for, and the layout by which it does so.
fn read(tree: &Tree<'_>, call: Place, name: &str, table: u32) -> Option<(Column, String)> {
    let id = if BOUNDS.contains(&name) {
        let comparison = tree.above(call).filter(|&above| tree.text(above) == "OPEXPR");
        comparison.and_then(|above| tree.list(above, "args").find(|&other| other != call))
    } else if READERS.contains(&name) {
        argument(tree, call, 0)
    } else {
        None
    };
    let by = named_by(name).and_then(|number| layout(tree, call, number));
    column(tree, id?, table).zip(by)
}

/// Returns the number of the argument that names the layout.
fn named_by(function: &str) -> Option<usize> {
    match function {
        "flake_next" | "flake_batch" => Some(0),
        "flake_during" | "flake_make" => Some(2),
        name if READERS.contains(&name) || BOUNDS.contains(&name) => Some(1),
        _ => None,
    }
}
