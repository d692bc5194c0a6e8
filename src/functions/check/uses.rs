//! Which layouts the expressions of this database use, whether they read IDs by the layout that their column's default makes them of,
//! and whether columns have room for them. It only reads the catalog and calls no function.

#![allow(unsafe_code, reason = "reads what queries return")]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::CStr;

use pgrx::prelude::*;

use super::finding::{Finding, described};
use crate::error::listed;
use crate::functions::layout_uses::{Expression, LONGEST_OBJECT, each_expression, layout};
use crate::layouts::known;
use crate::postgres::encoding::shortened;
use crate::postgres::extension::{self, Extension};
use crate::postgres::memory::{collect_or_raise, granted, require};
use crate::postgres::queries::{Queries, bytes};
use crate::postgres::relation;
use crate::postgres::stored_trees::{Argument, Call, Column};
use crate::seal;

/// The columns with the numbers $2 in the relations $1, and the columns that refer to them, also through others: the place in these
/// arrays, the column's name, and its type.
const COLUMNS: &CStr = c"
    WITH RECURSIVE holding(place, relation, number) AS (
        SELECT k.place, k.relation, k.number
        FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) WITH ORDINALITY k(relation, number, place)
        UNION SELECT h.place, f.conrelid, f.conkey[n] FROM holding h
        JOIN pg_catalog.pg_constraint f ON f.confrelid OPERATOR(pg_catalog.=) h.relation AND f.contype OPERATOR(pg_catalog.=) 'f'
        CROSS JOIN pg_catalog.generate_subscripts(f.confkey, 1) n
        WHERE f.confkey[n] OPERATOR(pg_catalog.=) h.number
    )
    SELECT h.place, pg_catalog.pg_describe_object('pg_catalog.pg_class'::pg_catalog.regclass, a.attrelid, a.attnum), a.atttypid, a.atttypmod
    FROM holding h JOIN pg_catalog.pg_attribute a
      ON a.attrelid OPERATOR(pg_catalog.=) h.relation AND a.attnum OPERATOR(pg_catalog.=) h.number AND NOT a.attisdropped
    JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) a.attrelid AND NOT c.relispartition";

/// Functions whose body is a string that mentions a function which makes IDs, and that an object of this database calls.
const STRINGS: &CStr = c"
    SELECT pg_catalog.pg_describe_object('pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, 0)
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid OPERATOR(pg_catalog.=) p.prolang
    WHERE p.prosqlbody IS NULL AND p.prosrc OPERATOR(pg_catalog.~) 'flake_(next|batch)|sno_next'
      AND l.lanname OPERATOR(pg_catalog.<>) 'c' AND l.lanname OPERATOR(pg_catalog.<>) 'internal' AND EXISTS (
        SELECT FROM pg_catalog.pg_depend d WHERE d.refobjid OPERATOR(pg_catalog.=) p.oid
          AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass)";

/// A default or a function that may make IDs.
#[derive(Default)]
struct Maker {
    object: String,
    /// The layouts that its own calls name.
    layouts: BTreeSet<String>,
    calls: Vec<pg_sys::Oid>,
    /// Its value may be another one than the ID.
    computes: bool,
}

/// How the expressions of this database use layouts.
#[derive(Default)]
pub struct Uses {
    /// Names of layouts in calls that make IDs, and in generated columns.
    pub named: BTreeSet<String>,
    /// Whether calls of `sno_next` name a partition.
    pub snos: BTreeSet<bool>,
    functions: HashMap<pg_sys::Oid, Maker>,
    defaults: HashMap<Column, Maker>,
    /// Names of keys of public IDs, with the objects that name them.
    pub keys: BTreeMap<String, BTreeSet<String>>,
    /// Columns that are read, with the layouts and the objects that read them.
    read: HashMap<Column, BTreeSet<(String, String)>>,
    /// How many columns were found to hold IDs.
    columns: usize,
    /// Faults, as sentences.
    wrong: BTreeSet<String>,
    /// Objects that may use any layout.
    unknown: BTreeSet<String>,
}

impl Uses {
    pub fn of_this_database() -> Self {
        let mut uses = Self::default();
        let Some(flake) = extension::find(c"flake") else { return uses };
        Queries::run(|queries| {
            each_expression(queries, flake, |expression| uses.add(flake, expression));
            queries.each::<1>(STRINGS, &[], |&[function]| {
                require();
                uses.unknown.extend(function.map(|_| text(function)));
            });
            uses.compare(queries);
        });
        uses
    }

    fn add(&mut self, flake: Extension, Expression { object, function, column, content }: Expression) {
        let Some(content) = content else {
            self.unknown.insert(object);
            return;
        };
        let mut maker = Maker { object, ..Maker::default() };
        for call in &content.calls {
            maker.computes |= !call.is_cast && call.result != pg_sys::INT8OID;
            let Some(name) = flake.name_of_function(call.function) else {
                maker.calls.push(call.function);
                continue;
            };
            let argument = match &*name {
                "flake_next" | "flake_batch" => 0,
                "flake_decode" | "flake_timestamp" | "flake_explain" | "flake_node" | "flake_cover" => 1,
                "flake_during" => 2,
                "flake_seal" | "flake_seal_uuid" | "flake_unseal" | "flake_unseal_or_error" => {
                    self.add_sealing(call, &maker.object);
                    continue;
                }
                "sno_next" => {
                    self.snos.insert(call.argument(1).is_some());
                    continue;
                }
                _ => continue,
            };
            match layout(call, argument) {
                Some(layout) if argument == 0 => maker.layouts.extend([layout]),
                Some(layout) => {
                    self.named.extend(column.map(|_| layout.clone()));
                    if let Some(&Argument::Column(id)) = call.argument(0) {
                        granted(self.read.try_reserve(1));
                        self.read.entry(id).or_default().insert((layout, maker.object.clone()));
                    }
                }
                None if argument == 0 => self.unknown.extend([maker.object.clone()]),
                None => {}
            }
        }
        self.named.extend(maker.layouts.iter().cloned());
        granted(self.defaults.try_reserve(1));
        granted(self.functions.try_reserve(1));
        if let Some(column) = column {
            self.defaults.insert(column, maker);
        } else if let Some(function) = function {
            // A function has a body, and defaults of its arguments.
            let of = self.functions.entry(function).or_default();
            of.layouts.extend(maker.layouts);
            of.calls.extend(maker.calls);
        }
    }

    /// A call that seals reads its column by the layout of the key.
    fn add_sealing(&mut self, call: &Call, object: &str) {
        let Some(Argument::Constant(key)) = call.argument(1) else { return };
        let Ok(name) = str::from_utf8(key) else { return };
        self.keys.entry(name.to_owned()).or_default().insert(object.to_owned());
        let layout = seal::find(key).and_then(|key| Some(key.shown().ok()?.layout));
        if let (Some(&Argument::Column(id)), Some(layout)) = (call.argument(0), layout) {
            granted(self.read.try_reserve(1));
            self.read.entry(id).or_default().insert((layout, format!("{object}, with key \"{name}\",")));
        }
    }

    /// Compares each default that makes IDs with the calls that read its column, and with the types of the columns that hold these IDs.
    fn compare(&mut self, queries: &Queries) {
        let made = self.defaults.iter().map(|(&column, default)| (column, default, self.made_by(default)));
        let made = collect_or_raise(made.filter(|(.., layouts)| !layouts.is_empty()));
        for (column, Maker { object, .. }, layouts) in &made {
            require();
            for (by, reader) in self.read.get(column).into_iter().flatten() {
                if !layouts.iter().any(|of| is_same(of, by)) {
                    let of = listed(layouts.iter(), "others");
                    self.wrong.insert(format!("The {object} makes IDs of {of}, but {reader} reads them by {by}."));
                }
            }
        }
        let relations = collect_or_raise(made.iter().map(|((relation, _), ..)| *relation));
        let numbers = collect_or_raise(made.iter().map(|((_, number), ..)| *number));
        let arrays = [(pg_sys::OIDARRAYOID, relations.into_datum()), (pg_sys::INT2ARRAYOID, numbers.into_datum())];
        let arrays = arrays.map(|(of, array)| (of, array.unwrap_or(pg_sys::Datum::null())));
        queries.each::<4>(COLUMNS, &arrays, |&[place, name, of, modifier]| {
            check_for_interrupts!();
            require();
            let number = |value: Option<pg_sys::Datum>| value.map_or(0, |value| value.value());
            let (_, default, layouts) = &made[number(place) - 1];
            let room = relation::integers(pg_sys::Oid::from(number(of) as u32), number(modifier) as i32);
            for layout in layouts.iter().filter_map(|layout| known(layout.as_bytes())) {
                if !default.computes && room < 1 << layout.width() {
                    let layout = layout.name();
                    self.wrong.insert(format!("The type of {} is too small for IDs of {layout}.", text(name)));
                }
            }
            self.columns += 1;
        });
    }

    /// Returns the layouts of the IDs that a default makes, itself or by the functions that it calls.
    fn made_by(&self, default: &Maker) -> BTreeSet<String> {
        let (mut layouts, mut calls, mut seen) = (default.layouts.clone(), default.calls.clone(), HashSet::new());
        while let Some(function) = calls.pop() {
            granted(seen.try_reserve(1));
            if let Some(of) = self.functions.get(&function).filter(|_| seen.insert(function)) {
                granted(calls.try_reserve(of.calls.len()));
                layouts.extend(of.layouts.iter().cloned());
                calls.extend(&of.calls);
            }
        }
        layouts
    }

    /// Returns the columns whose default makes IDs of one layout.
    pub fn made(&self) -> impl Iterator<Item = (Column, String)> {
        let defaults = self.defaults.iter().filter(|(_, default)| !default.computes);
        let made = defaults.map(|(&column, default)| (column, self.made_by(default)));
        made.filter_map(|(column, of)| Some((column, of.first().filter(|_| of.len() == 1)?.clone())))
    }

    /// Reports columns that are read by another layout than the one of their default, or that are too small for it.
    pub fn columns(&self) -> Finding {
        if self.wrong.is_empty() {
            let columns = self.columns;
            return self.known(Finding::fine(format!(
                "Columns that hold IDs by their defaults or foreign keys: {columns}. Their types and the expressions that read them fit."
            )));
        }
        Finding::wrong(
            described(self.wrong.iter()),
            "Name the layout of the column in each function that reads its IDs, seal them by a key of that layout, and use \
             columns of type bigint.",
        )
    }

    /// Returns a finding that depends on the layouts in use. It says nothing is wrong only if they are all known.
    pub fn known(&self, finding: Finding) -> Finding {
        if self.unknown.is_empty() || finding.ok == Some(false) {
            return finding;
        }
        let unknown = listed(self.unknown.iter(), "others");
        Finding::unknown(format!("{} It is not known which layouts these use: {unknown}.", finding.detail))
    }
}

fn is_same(one: &str, other: &str) -> bool {
    let bits = known(one.as_bytes()).zip(known(other.as_bytes()));
    one == other || bits.is_some_and(|(one, other)| one.same_bits(other))
}

/// Returns a text of a row.
pub fn text(value: Option<pg_sys::Datum>) -> String {
    // SAFETY: the queries above return texts of rows that exist.
    shortened(unsafe { bytes(value) }.unwrap_or_default(), LONGEST_OBJECT)
}
