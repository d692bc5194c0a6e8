//! A check of the columns whose defaults make IDs: whether this database reads them by the same layout, and whether their type
//! holds them. It reads the catalog only, and calls nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pgrx::prelude::*;
use pgrx::spi::{SpiClient, SpiError};

use super::bounds;
use super::calls::{Column, DEFAULT, argument, layout};
use super::finding::Finding;
use super::views::Views;
use crate::functions::layout_uses::{EXPRESSIONS, functions};
use crate::layouts::known;
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::extension;
use crate::postgres::node_tree::{LONGEST, Place, Tree};

/// How many findings are named.
const MOST_NAMED: usize = 10;

/// The functions that tell parts of an ID, their first argument. The text form of another layout is as good as any.
const READERS: &[&str] =
    &["flake_decode", "flake_timestamp", "flake_explain", "flake_node", "flake_cover", "flake_during"];
/// The functions that return bounds to compare IDs with.
const BOUNDS: &[&str] = &["flake_min", "flake_max", "flake_first", "flake_last"];

/// The name of the column $2 of a table, $1, and how many bits of an integer its type holds, NULL if all.
const COLUMN: &str = "
    SELECT pg_catalog.convert_to(
               pg_catalog.pg_describe_object('pg_catalog.pg_class'::pg_catalog.regclass, attrelid, attnum),
               pg_catalog.getdatabaseencoding()),
           CASE WHEN atttypid OPERATOR(pg_catalog.=) 'pg_catalog.int2'::pg_catalog.regtype THEN 15
                WHEN atttypid OPERATOR(pg_catalog.=) 'pg_catalog.int4'::pg_catalog.regtype THEN 31
                WHEN atttypid OPERATOR(pg_catalog.=) 'pg_catalog.float4'::pg_catalog.regtype THEN 24
                WHEN atttypid OPERATOR(pg_catalog.=) 'pg_catalog.float8'::pg_catalog.regtype THEN 53 END
    FROM pg_catalog.pg_attribute WHERE attrelid OPERATOR(pg_catalog.=) $1 AND attnum OPERATOR(pg_catalog.=) $2";

/// The uses of layouts in the expressions of this database.
#[derive(Default)]
pub struct Uses {
    /// Names of layouts in column defaults and generated columns.
    pub named: BTreeSet<String>,
    /// Calls of `sno_next` there, by the number of their arguments.
    pub snos: BTreeSet<usize>,
    /// Columns whose default makes IDs, with the layout.
    made: BTreeMap<Column, String>,
    /// Columns that are read, by which layouts, in which objects.
    read: BTreeMap<Column, BTreeSet<(String, String)>>,
    /// The faults of these reads, in sentences.
    wrong: BTreeSet<String>,
}

impl Uses {
    pub fn of_this_database() -> Self {
        let mut uses = Self::default();
        if let Some(extension) = extension::find(c"flake") {
            Spi::connect(|client| {
                let functions = functions(client, extension.oid)?;
                Catalog { client, functions }.look(&mut uses, extension.oid)
            })
            .unwrap_or_else(|error: SpiError| pgrx::error!("{error}"));
        }
        uses
    }

    /// Columns that are read by another layout than the one that their default makes IDs of, or are too small for it.
    pub fn readers(self) -> Finding {
        if self.wrong.is_empty() {
            return Finding::fine("No column is read by another layout than the one of which its default makes IDs.");
        }
        let more = self.wrong.len().saturating_sub(MOST_NAMED);
        let named =
            self.wrong.into_iter().take(MOST_NAMED).chain((more > 0).then(|| format!("There are {more} more.")));
        Finding::wrong(
            named.collect::<Vec<_>>().join(" "),
            "Name the layout of the column in each function that reads its IDs, and have columns of type bigint.",
        )
    }
}

struct Catalog<'a> {
    client: &'a SpiClient<'a>,
    /// The names of flake's functions, by their OIDs.
    functions: HashMap<u32, String>,
}

impl Catalog<'_> {
    /// Looks at each expression that calls flake.
    fn look(&self, uses: &mut Uses, extension: pg_sys::Oid) -> Result<(), SpiError> {
        let mut views = Views::default();
        for row in self.client.select(EXPRESSIONS, None, &[extension.into(), "".into()])? {
            check_for_interrupts!();
            let (Some(object), Some(tree)) = (row.get::<&[u8]>(1)?, row.get::<&[u8]>(2)?) else { continue };
            if tree.len() > LONGEST {
                continue;
            }
            let (object, text) = (to_utf8_lossy(object), String::from_utf8_lossy(tree));
            let (table, column) = (row.get::<pg_sys::Oid>(3)?.map_or(0, |oid| oid.to_u32()), row.get::<i16>(4)?);
            let tree = Tree::read(&text);
            for call in tree.nodes("FUNCEXPR") {
                let function = tree.number(call, "funcid").and_then(|function| self.functions.get(&function));
                let Some(name) = function.map(String::as_str) else { continue };
                if let Some((column, by)) = read(&mut views, &tree, call, name, table)? {
                    uses.read.entry(column).or_default().insert((by, object.clone().into_owned()));
                }
                let Some(column) = column else { continue };
                uses.named.extend(named_by(name).and_then(|number| layout(&tree, call, number)));
                match name {
                    "flake_next" => uses.made.extend(layout(&tree, call, 0).map(|of| ((table, column), of))),
                    "sno_next" => uses.snos.extend([tree.list(call, "args").count()]),
                    _ => {}
                }
            }
        }
        uses.wrong = self.wrong(uses)?;
        Ok(())
    }

    /// Says what is wrong.
    fn wrong(&self, uses: &Uses) -> Result<BTreeSet<String>, SpiError> {
        let mut wrong = BTreeSet::new();
        let bounds = bounds::wrong(self.client, &uses.made)?;
        for (column, of) in &uses.made {
            let arguments = [pg_sys::Oid::from(column.0).into(), column.1.into()];
            let Some(row) = self.client.select(COLUMN, Some(1), &arguments)?.next() else { continue };
            let name = to_utf8_lossy(row.get::<&[u8]>(1)?.unwrap_or_default()).into_owned();
            let layout = known(of.as_bytes());
            if layout.zip(row.get::<i32>(2)?).is_some_and(|(layout, bits)| layout.width() > bits as u32) {
                wrong.insert(format!("The type of {name} is too small for the IDs of {of} that its default makes."));
            }
            if bounds.contains(column) {
                wrong.insert(format!(
                    "The default of {name} makes IDs of {of}, but its partitions begin at times of {DEFAULT}."
                ));
            }
            for (by, object) in uses.read.get(column).into_iter().flatten() {
                let is_same = layout.zip(known(by.as_bytes())).is_some_and(|(one, other)| one.same_bits(other));
                if !is_same && of != by {
                    wrong.insert(format!("The default of {name} makes IDs of {of}, but {object} reads them by {by}."));
                }
            }
        }
        Ok(wrong)
    }
}

/// The column whose IDs a call reads, or returns a bound of, and the layout by which it does.
fn read(
    views: &mut Views,
    tree: &Tree<'_>,
    call: Place,
    name: &str,
    table: u32,
) -> Result<Option<(Column, String)>, SpiError> {
    let id = if BOUNDS.contains(&name) {
        let comparison = tree.above(call).filter(|&above| tree.text(above) == "OPEXPR");
        comparison.and_then(|above| tree.list(above, "args").find(|&other| other != call))
    } else if READERS.contains(&name) {
        argument(tree, call, 0)
    } else {
        None
    };
    let by = named_by(name).and_then(|number| layout(tree, call, number));
    let Some(id) = id else { return Ok(None) };
    Ok(views.column(tree, id, table)?.zip(by))
}

/// The number of the argument that names the layout.
fn named_by(function: &str) -> Option<usize> {
    match function {
        "flake_next" | "flake_batch" => Some(0),
        "flake_during" | "flake_make" => Some(2),
        name if READERS.contains(&name) || BOUNDS.contains(&name) => Some(1),
        _ => None,
    }
}
