//! The objects of this database that name a layout by a constant, so that they would fail without it.
//!
//! PostgreSQL records that a default, an index or a view depends on a function of flake, not which layout it names. That
//! stands in the node tree of the expression.

use std::collections::{BTreeSet, HashMap};

use pgrx::prelude::*;
use pgrx::spi::{SpiClient, SpiError};

use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::extension;
use crate::postgres::node_tree::{LONGEST, Place, Tree};

/// The expressions that contain $2, of all objects that depend on a function of an extension, $1, or on an operator that stands
/// for one, in bytes of the database's encoding; with their tables, and the numbers of columns that they are for.
pub(super) const EXPRESSIONS: &str = "
    SELECT pg_catalog.convert_to(pg_catalog.pg_describe_object(x.catalog, x.object, 0), pg_catalog.getdatabaseencoding()),
           pg_catalog.convert_to(x.tree::pg_catalog.text, pg_catalog.getdatabaseencoding()), x.relation, x.number
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
    WHERE pg_catalog.strpos(x.tree::pg_catalog.text, $2) OPERATOR(pg_catalog.>) 0";

/// The functions of an extension, $1.
const FUNCTIONS: &str = "
    SELECT p.oid, p.proname::pg_catalog.text
    FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) d.objid
    WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
      AND d.refobjid OPERATOR(pg_catalog.=) $1
      AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass";

/// Returns the names of an extension's functions, by their OIDs.
pub(super) fn functions(client: &SpiClient<'_>, extension: pg_sys::Oid) -> Result<HashMap<u32, String>, SpiError> {
    let mut functions = HashMap::new();
    for row in client.select(FUNCTIONS, None, &[extension.into()])? {
        functions.extend(row.get::<pg_sys::Oid>(1)?.map(|oid| oid.to_u32()).zip(row.get::<String>(2)?));
    }
    Ok(functions)
}

/// Returns descriptions of the objects that name a layout in a call of flake's functions.
pub fn of(layout: &str) -> BTreeSet<String> {
    let Some(extension) = extension::find(c"flake") else { return BTreeSet::new() };
    Spi::connect(|client| {
        let functions = functions(client, extension.oid)?;
        let mut uses = BTreeSet::new();
        // As the tree of a constant has it.
        let constant: String = layout.bytes().map(|byte| format!(" {byte}")).collect();
        for row in client.select(EXPRESSIONS, None, &[extension.oid.into(), constant.into()])? {
            check_for_interrupts!();
            let (Some(object), Some(tree)) = (row.get::<&[u8]>(1)?, row.get::<&[u8]>(2)?) else { continue };
            // It has the constant somewhere.
            if tree.len() > LONGEST || names(&Tree::read(&String::from_utf8_lossy(tree)), &functions, layout) {
                uses.insert(to_utf8_lossy(object).into_owned());
            }
        }
        Ok(uses)
    })
    .unwrap_or_else(|error: SpiError| pgrx::error!("{error}"))
}

/// Returns whether an expression contains a call of one of these functions, or of an operator that stands for one, with this
/// constant below it, at whatever depth.
fn names(tree: &Tree<'_>, functions: &HashMap<u32, String>, layout: &str) -> bool {
    let is_named = |&constant: &Place| {
        let bytes = tree.bytes(constant).unwrap_or_default();
        // A text is behind its length of four bytes; a name is filled with zeros.
        let is_name = || bytes.len() == 64 && bytes.strip_prefix(layout.as_bytes()).is_some_and(|rest| rest[0] == 0);
        bytes.get(4..) == Some(layout.as_bytes()) || is_name()
    };
    let is_call = |node: Place| {
        let function = match tree.text(node) {
            "FUNCEXPR" => tree.number(node, "funcid"),
            "OPEXPR" => tree.number(node, "opfuncid"),
            _ => None,
        };
        function.is_some_and(|function| functions.contains_key(&function))
    };
    tree.nodes("CONST")
        .filter(is_named)
        .any(|constant| std::iter::successors(tree.above(constant), |&node| tree.above(node)).any(is_call))
}
