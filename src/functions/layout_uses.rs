//! Finds the objects of this database that name a layout by a constant, and would fail without that layout.
//!
//! PostgreSQL records that a default, an index or a view depends on a function of flake, but not which layout it names. Only the
//! node tree of the expression has the name.

#![allow(unsafe_code, reason = "reads what queries return")]

use std::collections::{BTreeSet, HashMap};
use std::ffi::CStr;

use pgrx::prelude::*;

use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::extension::{self, Extension};
use crate::postgres::node_tree::{LONGEST, MOST};
use crate::postgres::queries::{Queries, bytes};

/// The expressions of all objects that depend on a function of extension $1, or on an operator that stands for one, as bytes in the
/// database's encoding, with their tables and the columns that they belong to, the shortest first. An expression is
/// NULL if it is longer than $2, or if it comes after $3 bytes of others: PostgreSQL knows the lengths without reading the
/// expressions.
const EXPRESSIONS: &CStr = c"
    SELECT pg_catalog.convert_to(pg_catalog.pg_describe_object(s.catalog, s.object, 0), pg_catalog.getdatabaseencoding()),
           CASE WHEN s.length OPERATOR(pg_catalog.<=) $2 AND s.total OPERATOR(pg_catalog.<=) $3
                THEN pg_catalog.convert_to(s.tree, pg_catalog.getdatabaseencoding()) END, s.relation, s.number
    FROM (SELECT x.catalog, x.object, x.tree::pg_catalog.text AS tree, x.relation, x.number, l.length,
                 pg_catalog.sum(l.length) OVER (ORDER BY l.length, x.catalog, x.object) AS total
    FROM (
        WITH f AS (
            SELECT classid, objid FROM pg_catalog.pg_depend
            WHERE refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
              AND refobjid OPERATOR(pg_catalog.=) $1
              AND classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
        )
        SELECT DISTINCT d.classid, d.objid
        FROM (
            SELECT classid, objid FROM f
            UNION ALL SELECT 'pg_catalog.pg_operator'::pg_catalog.regclass, o.oid
            FROM f JOIN pg_catalog.pg_operator o ON o.oprcode OPERATOR(pg_catalog.=) f.objid
        ) called(classid, objid) JOIN pg_catalog.pg_depend d
          ON d.refclassid OPERATOR(pg_catalog.=) called.classid AND d.refobjid OPERATOR(pg_catalog.=) called.objid
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
        UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, oid, typdefaultbin, 0, NULL FROM pg_catalog.pg_type
    ) x(catalog, object, tree, relation, number)
      ON x.catalog OPERATOR(pg_catalog.=) u.classid AND x.object OPERATOR(pg_catalog.=) u.objid
    CROSS JOIN LATERAL (SELECT pg_catalog.octet_length(x.tree::pg_catalog.text)::pg_catalog.int8 AS length) l
    WHERE x.tree IS NOT NULL) s ORDER BY s.total";

/// The functions of extension $1.
const FUNCTIONS: &CStr = c"
    SELECT p.oid, pg_catalog.convert_to(p.proname::pg_catalog.text, pg_catalog.getdatabaseencoding())
    FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) d.objid
    WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
      AND d.refobjid OPERATOR(pg_catalog.=) $1
      AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass";

/// An expression that calls flake.
pub(super) struct Expression<'a> {
    /// A description of the object that it belongs to.
    pub object: String,
    /// None if it is too long to be read, or comes after too many others.
    pub tree: Option<&'a [u8]>,
    /// The table of its variables outside of queries; 0 if there are none.
    pub table: u32,
    /// The column that it belongs to.
    pub column: Option<i16>,
}

/// Calls `act` with each expression of this database that calls flake.
pub(super) fn each_expression(queries: &Queries, flake: Extension, mut act: impl FnMut(Expression<'_>)) {
    let bound = |bound: usize| (pg_sys::INT8OID, pg_sys::Datum::from(bound));
    let parameters = [(pg_sys::OIDOID, flake.oid.into()), bound(LONGEST), bound(MOST)];
    queries.each::<4>(EXPRESSIONS, &parameters, |&[object, tree, table, column]| {
        check_for_interrupts!();
        // SAFETY: the query returns columns of these types.
        let (object, tree) = unsafe { (bytes(object), bytes(tree)) };
        act(Expression {
            object: to_utf8_lossy(object.unwrap_or_default()).into_owned(),
            tree,
            table: table.map_or(0, |oid| oid.value() as u32),
            column: column.map(|number| number.value() as i16),
        });
    });
}

/// Returns the names of an extension's functions by their OIDs.
pub(super) fn functions(queries: &Queries, flake: Extension) -> HashMap<u32, String> {
    let mut functions = HashMap::new();
    queries.each::<2>(FUNCTIONS, &[(pg_sys::OIDOID, flake.oid.into())], |&[oid, name]| {
        // SAFETY: the query returns columns of these types.
        let name = unsafe { bytes(name) }.unwrap_or_default();
        functions.extend(oid.map(|oid| (oid.value() as u32, to_utf8_lossy(name).into_owned())));
    });
    functions
}

/// Returns descriptions of the objects that call flake and contain this name as a constant, even of another call. An object whose
/// expression is too long to be read counts too.
pub fn of(name: &str) -> BTreeSet<String> {
    let Some(flake) = extension::find(c"flake") else { return BTreeSet::new() };
    let printed = |bytes: &[u8]| bytes.iter().map(|&byte| format!(" {}", byte as i8)).collect::<String>();
    // A tree shows the bytes of a constant. A text has its length in four bytes before its characters, and a name has zeros after
    // them.
    let size = name.len() as u32 + 4;
    let length = if cfg!(target_endian = "little") { size << 2 } else { size };
    let constants = [
        format!("[{}{} ]", printed(&length.to_ne_bytes()), printed(name.as_bytes())),
        format!("[{} 0 ", printed(name.as_bytes())),
    ];
    let mut uses = BTreeSet::new();
    Queries::run(|queries| {
        each_expression(queries, flake, |Expression { object, tree, .. }| match tree.map(String::from_utf8_lossy) {
            None => uses.extend([format!("{object} (perhaps; its expression is too long to read)")]),
            Some(tree) => uses.extend(constants.iter().any(|constant| tree.contains(constant)).then_some(object)),
        });
    });
    uses
}
