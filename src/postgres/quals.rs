//! The conditions of a query, before the planner distributes them to relations and joins.
#![allow(unsafe_code, reason = "reads nodes of plans")]

use pgrx::{PgList, is_a, pg_sys};

/// Calls `act` with each list of conditions below a node of the query's tree of joins. All conditions of a list hold where the node holds.
///
/// # Safety
/// The node must be one of a query's join tree, or null. Nothing here raises an error.
pub unsafe fn each_list(node: *mut pg_sys::Node, act: &mut dyn FnMut(*mut pg_sys::List)) {
    // SAFETY: as the caller promises; the tag of a node tells its type.
    unsafe {
        let is_list = |quals: *mut pg_sys::Node| !quals.is_null() && is_a(quals, pg_sys::NodeTag::T_List);
        if node.is_null() {
        } else if is_a(node, pg_sys::NodeTag::T_FromExpr) {
            let from = &*node.cast::<pg_sys::FromExpr>();
            PgList::<pg_sys::Node>::from_pg(from.fromlist).iter_ptr().for_each(|below| each_list(below, act));
            if is_list(from.quals) {
                act(from.quals.cast());
            }
        } else if is_a(node, pg_sys::NodeTag::T_JoinExpr) {
            let join = &*node.cast::<pg_sys::JoinExpr>();
            each_list(join.larg, act);
            each_list(join.rarg, act);
            if is_list(join.quals) {
                act(join.quals.cast());
            }
        }
    }
}
