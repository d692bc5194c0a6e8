//! The objects of this database that name a layout by a constant, so that they would fail without it.
//!
//! PostgreSQL records that a default, an index or a view depends on a function of flake, not which layout it names. That
//! stands in the node tree of the expression.

use std::collections::BTreeSet;

use pgrx::prelude::*;

use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::extension;

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
    SELECT objid FROM pg_catalog.pg_depend
    WHERE refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
      AND refobjid OPERATOR(pg_catalog.=) $1
      AND classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass";

/// Returns descriptions of the objects that name a layout in a call of flake's functions.
pub fn of(layout: &str) -> BTreeSet<String> {
    let Some(extension) = extension::find(c"flake") else { return BTreeSet::new() };
    Spi::connect(|client| {
        let mut functions = BTreeSet::new();
        for row in client.select(FUNCTIONS, None, &[extension.oid.into()])? {
            functions.extend(row.get::<pg_sys::Oid>(1)?.map(|oid| oid.to_u32()));
        }
        let mut uses = BTreeSet::new();
        // As the tree of a constant has it.
        let constant: String = layout.bytes().map(|byte| format!(" {byte}")).collect();
        for row in client.select(EXPRESSIONS, None, &[extension.oid.into(), constant.into()])? {
            check_for_interrupts!();
            let (Some(object), Some(tree)) = (row.get::<&[u8]>(1)?, row.get::<&[u8]>(2)?) else { continue };
            if names(&String::from_utf8_lossy(tree), &functions, layout) {
                uses.insert(to_utf8_lossy(object).into_owned());
            }
        }
        Ok(uses)
    })
    .unwrap_or_else(|error: pgrx::spi::SpiError| pgrx::error!("{error}"))
}

/// Returns whether an expression, as PostgreSQL writes its node tree, contains a call of one of these functions, or of an
/// operator that stands for one, with this constant below it, at whatever depth.
fn names(tree: &str, functions: &BTreeSet<u32>, constant: &str) -> bool {
    // Which of the nodes that are open are such calls. Braces in names and texts are escaped.
    let (mut open, mut calls, mut is_escaped) = (Vec::new(), 0, false);
    for (index, byte) in tree.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'{' => {
                let is_call = called(&tree[index..]).is_some_and(|function| functions.contains(&function));
                calls += usize::from(is_call);
                open.push(is_call);
            }
            b'}' => calls -= usize::from(open.pop() == Some(true)),
            b':' if calls > 0 && is_constant(&tree[index..], constant) => return true,
            _ => {}
        }
    }
    false
}

/// Returns the function that a node calls, if it is a call.
fn called(node: &str) -> Option<u32> {
    let function = match node.strip_prefix("{OPEXPR :opno ") {
        Some(operator) => operator.split_once(" :opfuncid ")?.1,
        None => node.strip_prefix("{FUNCEXPR :funcid ")?,
    };
    function.split(' ').next()?.parse().ok()
}

/// Returns whether a field of a node is the value of a constant, and that is this text.
fn is_constant(field: &str, text: &str) -> bool {
    field.strip_prefix(":constvalue ").is_some_and(|value| is_text(value, text))
}

/// Returns whether a constant such as `8 [ 32 0 0 0 109 105 110 101 ]` is this text, behind its length of four bytes, or
/// this name, filled with zeros.
fn is_text(value: &str, text: &str) -> bool {
    let mut words = value.split(' ').skip(1);
    if words.next() != Some("[") {
        return false;
    }
    let mut bytes = words.map_while(|byte| byte.parse::<i16>().ok()).map(|byte| byte as u8);
    let is_name = value.starts_with("64 [") && bytes.clone().take(text.len() + 1).eq(text.bytes().chain([0]));
    is_name || bytes.by_ref().skip(4).eq(text.bytes())
}
