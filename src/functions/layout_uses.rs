//! Finds the objects of this database that name a layout by a constant, and would fail without that layout.
//!
//! PostgreSQL records that a default, an index or a view depends on a function of flake, but not which layout it names. Only the
//! node tree of the expression has the name.

#![allow(unsafe_code, reason = "reads what queries return")]

use std::collections::BTreeSet;
use std::ffi::CStr;

use flake_core::{LONGEST_NAME, sequence_code};
use pgrx::prelude::*;

use crate::postgres::encoding::shortened;
use crate::postgres::extension::{self, Extension};
use crate::postgres::memory::require;
use crate::postgres::queries::{Queries, bytes};
use crate::postgres::stored_trees::{Argument, Call, Column, Content, Reader};

/// The layout of a call that names none.
const DEFAULT: &str = "twitter";

/// How many bytes of an object's description are shown. A function's description has the names of its arguments' types.
pub(super) const LONGEST_OBJECT: usize = 300;

/// The expressions of all objects, but its own, that depend on a function of extension $1, also through other functions and operators, the shortest
/// first: a description of the object, the OID of a function, the expression, its table, and the column whose default it is, which can
/// be the default of the column's type.
const EXPRESSIONS: &CStr = c"
    WITH RECURSIVE called(classid, objid) AS (
        SELECT classid, objid FROM pg_catalog.pg_depend
        WHERE refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
          AND refobjid OPERATOR(pg_catalog.=) $1
          AND classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
        UNION SELECT d.classid, d.objid FROM called JOIN pg_catalog.pg_depend d
          ON d.refclassid OPERATOR(pg_catalog.=) called.classid AND d.refobjid OPERATOR(pg_catalog.=) called.objid
        WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
           OR d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_operator'::pg_catalog.regclass
    )
    SELECT pg_catalog.pg_describe_object(x.catalog, x.object, 0),
           CASE WHEN x.catalog OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass THEN x.object END,
           x.tree::pg_catalog.text, x.relation, x.number
    FROM (
        SELECT DISTINCT d.classid, d.objid FROM called JOIN pg_catalog.pg_depend d
          ON d.refclassid OPERATOR(pg_catalog.=) called.classid AND d.refobjid OPERATOR(pg_catalog.=) called.objid
        WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_depend m
            WHERE m.classid OPERATOR(pg_catalog.=) d.classid AND m.objid OPERATOR(pg_catalog.=) d.objid
              AND m.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
              AND m.refobjid OPERATOR(pg_catalog.=) $1)
    ) u JOIN (
        SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass::pg_catalog.oid, oid, adbin, adrelid, adnum FROM pg_catalog.pg_attrdef
        UNION ALL SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, oid, conbin, conrelid, NULL FROM pg_catalog.pg_constraint
        UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, indexrelid, indexprs, indrelid, NULL FROM pg_catalog.pg_index
        UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, indexrelid, indpred, indrelid, NULL FROM pg_catalog.pg_index
        UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, partrelid, partexprs, partrelid, NULL FROM pg_catalog.pg_partitioned_table
        UNION ALL SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, oid, ev_action, ev_class, NULL FROM pg_catalog.pg_rewrite
        UNION ALL SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, oid, ev_qual, ev_class, NULL FROM pg_catalog.pg_rewrite
        UNION ALL SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, oid, polqual, polrelid, NULL FROM pg_catalog.pg_policy
        UNION ALL SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, oid, polwithcheck, polrelid, NULL FROM pg_catalog.pg_policy
        UNION ALL SELECT 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, oid, stxexprs, stxrelid, NULL FROM pg_catalog.pg_statistic_ext
        UNION ALL SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass, oid, tgqual, tgrelid, NULL FROM pg_catalog.pg_trigger
        UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, oid, prosqlbody, 0, NULL FROM pg_catalog.pg_proc
        UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, oid, proargdefaults, 0, NULL FROM pg_catalog.pg_proc
        UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid, t.typdefaultbin, COALESCE(c.oid, 0), a.attnum FROM pg_catalog.pg_type t
            LEFT JOIN pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c
              ON c.oid OPERATOR(pg_catalog.=) a.attrelid AND c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'p', 'f'])
              ON a.atttypid OPERATOR(pg_catalog.=) t.oid AND NOT a.atthasdef
    ) x(catalog, object, tree, relation, number)
      ON x.catalog OPERATOR(pg_catalog.=) u.classid AND x.object OPERATOR(pg_catalog.=) u.objid
    WHERE x.tree IS NOT NULL ORDER BY pg_catalog.octet_length(x.tree::pg_catalog.text)";

/// An expression that calls flake, perhaps through other functions.
pub(super) struct Expression {
    /// A description of the object that it belongs to.
    pub object: String,
    /// The function that it belongs to.
    pub function: Option<pg_sys::Oid>,
    /// The column whose default it is.
    pub column: Option<Column>,
    /// None if it was too long or too deep to be read.
    pub content: Option<Content>,
}

/// Calls `act` with each expression of this database that calls flake.
pub(super) fn each_expression(queries: &Queries, flake: Extension, mut act: impl FnMut(Expression)) {
    let mut reader = Reader::new();
    queries.each::<5>(
        EXPRESSIONS,
        &[(pg_sys::OIDOID, flake.oid.into())],
        |&[object, function, tree, table, number]| {
            check_for_interrupts!();
            require();
            let oid = |value: Option<pg_sys::Datum>| value.map(|value| pg_sys::Oid::from(value.value() as u32));
            let table = oid(table).unwrap_or(pg_sys::Oid::INVALID);
            // SAFETY: the query returns columns of these types.
            let (object, content) = unsafe { (bytes(object), tree.and_then(|tree| reader.read(tree, table))) };
            act(Expression {
                object: shortened(object.unwrap_or_default(), LONGEST_OBJECT),
                function: oid(function),
                column: number.map(|number| (table, number.value() as i16)),
                content,
            });
        },
    );
}

/// Returns the layout that a call names in an argument, or None if that is not a constant.
pub(super) fn layout(call: &Call, number: usize) -> Option<String> {
    match call.argument(number) {
        None => Some(DEFAULT.to_owned()),
        Some(Argument::Constant(name)) if name.len() <= LONGEST_NAME => String::from_utf8(name.clone()).ok(),
        Some(_) => None,
    }
}

/// The sequences that start at $1.
const SEQUENCES: &CStr = c"
    SELECT pg_catalog.pg_describe_object('pg_catalog.pg_class'::pg_catalog.regclass, s.seqrelid, 0) FROM pg_catalog.pg_sequence s
    WHERE s.seqstart OPERATOR(pg_catalog.=) $1";

/// Returns descriptions of the sequences that were adopted by this layout.
pub fn sequences(name: &str) -> BTreeSet<String> {
    let mut uses = BTreeSet::new();
    let start = -sequence_code(name);
    Queries::run(|queries| {
        queries.each::<1>(SEQUENCES, &[(pg_sys::INT8OID, start.into())], |&[object]| {
            require();
            // SAFETY: the query returns a text.
            uses.extend([shortened(unsafe { bytes(object) }.unwrap_or_default(), LONGEST_OBJECT)]);
        });
    });
    uses
}

/// Returns descriptions of the objects that call flake and contain this name as a constant, even of another call. An object whose
/// expression cannot be read counts too.
pub fn of(name: &str) -> BTreeSet<String> {
    let Some(flake) = extension::find(c"flake") else { return BTreeSet::new() };
    let mut uses = BTreeSet::new();
    Queries::run(|queries| {
        each_expression(queries, flake, |Expression { object, content, .. }| match content {
            None => uses.extend([format!("{object} (perhaps; its expression is too long or too deep to read)")]),
            Some(of) => uses.extend(of.constants.iter().any(|text| text == name.as_bytes()).then_some(object)),
        });
    });
    uses
}
