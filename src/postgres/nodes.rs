//! Builds nodes of the planner's expressions.
#![allow(unsafe_code, reason = "builds nodes of plans")]

use std::slice;

use pgrx::{PgList, is_a, pg_sys};

use super::catalog::operator;

type Node = *mut pg_sys::Node;

/// Returns the nodes of a list. pgrx would call PostgreSQL for each of them.
///
/// # Safety It must be a list of nodes that does not change meanwhile, or null.
pub unsafe fn elements<'a>(list: *const pg_sys::List) -> &'a [Node] {
    // SAFETY: as the caller promises; a cell is a union that holds a pointer.
    unsafe { list.as_ref().map_or(&[], |list| slice::from_raw_parts(list.elements.cast(), list.length as usize)) }
}

/// # Safety
/// The node must be one that PostgreSQL can copy.
pub unsafe fn copy<T>(node: *mut T) -> *mut T {
    // SAFETY: as the caller promises.
    unsafe { pg_sys::copyObjectImpl(node.cast()).cast() }
}

/// Returns a call of a function.
///
/// # Safety
/// The arguments must be expressions of the types that the function takes.
pub unsafe fn call(function: pg_sys::Oid, result: pg_sys::Oid, arguments: &[Node], collation: pg_sys::Oid) -> Node {
    let form = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
    // SAFETY: as the caller promises.
    unsafe { pg_sys::makeFuncExpr(function, result, list(arguments), pg_sys::InvalidOid, collation, form).cast() }
}

/// Returns a comparison by a B-tree strategy, or None if the bound is NULL: then the condition is NULL, which filters like false.
///
/// # Safety Both must be expressions of one type.
pub unsafe fn compared(key: Node, strategy: u32, bound: Node) -> Option<Node> {
    // SAFETY: as the caller promises; the tag of a node tells its type.
    unsafe {
        if is_a(bound, pg_sys::NodeTag::T_Const) && (*bound.cast::<pg_sys::Const>()).constisnull {
            return Some(pg_sys::makeBoolConst(false, false));
        }
        let (operator, none) = (operator(pg_sys::exprType(key), strategy)?, pg_sys::InvalidOid);
        let comparison = pg_sys::make_opclause(operator, pg_sys::BOOLOID, false, key.cast(), bound.cast(), none, none);
        pg_sys::set_opfuncid(comparison.cast());
        Some(comparison.cast())
    }
}

/// Returns a constant of type bigint.
pub fn int8(value: i64) -> Node {
    // SAFETY: a bigint is passed by value.
    unsafe { pg_sys::makeConst(pg_sys::INT8OID, -1, pg_sys::InvalidOid, 8, value.into(), false, true).cast() }
}

/// Returns a constant of type internal that points to nothing and is not NULL.
pub fn internal() -> Node {
    // SAFETY: an internal is passed by value.
    unsafe { pg_sys::makeConst(pg_sys::INTERNALOID, -1, pg_sys::InvalidOid, 8, 0.into(), false, true).cast() }
}

/// Returns an expression as one of another type that has the same bits.
///
/// # Safety
/// It must be an expression of that type, or of a domain over it.
pub unsafe fn relabeled(node: Node, of: pg_sys::Oid, modifier: i32) -> Node {
    let form = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
    // SAFETY: as the caller promises.
    unsafe { pg_sys::makeRelabelType(node.cast(), of, modifier, pg_sys::InvalidOid, form).cast() }
}

/// # Safety
/// These must be conditions, at least one.
pub unsafe fn and(conditions: &[Node]) -> Node {
    // SAFETY: as the caller promises.
    unsafe { if let [only] = *conditions { only } else { pg_sys::make_andclause(list(conditions)).cast() } }
}

/// # Safety
/// These must be conditions.
pub unsafe fn or(conditions: &[Node]) -> Node {
    // SAFETY: as the caller promises.
    unsafe { pg_sys::make_orclause(list(conditions)).cast() }
}

fn list(nodes: &[Node]) -> *mut pg_sys::List {
    let mut list = PgList::<pg_sys::Node>::new();
    nodes.iter().for_each(|&node| list.push(node));
    list.into_pg()
}
