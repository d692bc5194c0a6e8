//! The parts of the planner's expressions, and their costs.
#![allow(unsafe_code, reason = "reads nodes of plans")]

use std::ffi::c_void;

use pgrx::{PgList, is_a, pg_sys};

/// The most nodes of a small expression.
const FEW: usize = 100;

/// Returns whether an expression may be evaluated twice, by PostgreSQL's own rule for functions in SQL. Costs alone do not limit
/// the size of such an expression, because they are settings of the session.
///
/// # Safety It must be an expression, and the root must be null or the root of its query.
pub unsafe fn is_cheap(root: *mut pg_sys::PlannerInfo, expression: *mut pg_sys::Node) -> bool {
    // SAFETY: as the caller promises. The planner cannot yet estimate the cost of a sub-query.
    unsafe {
        is_atom(expression)
            || is_small(expression) && {
                let mut cost = pg_sys::QualCost::default();
                pg_sys::cost_qual_eval_node(&raw mut cost, expression, root);
                cost.startup + cost.per_tuple <= 10.0 * pg_sys::cpu_operator_cost
            }
    }
}

/// Returns whether an expression is a constant or a column, as most are. Then other questions need no walk by PostgreSQL.
///
/// # Safety It must be an expression.
pub unsafe fn is_atom(expression: *mut pg_sys::Node) -> bool {
    // SAFETY: as the caller promises.
    unsafe { is_a(expression, pg_sys::NodeTag::T_Const) || is_a(expression, pg_sys::NodeTag::T_Var) }
}

/// Returns whether an expression has few nodes and no sub-queries.
///
/// # Safety
/// It must be an expression.
pub unsafe fn is_small(expression: *mut pg_sys::Node) -> bool {
    let mut nodes = 0;
    // SAFETY: as the caller promises.
    unsafe {
        !any(expression, &mut |_| {
            nodes += 1;
            nodes > FEW
        }) && !pg_sys::contain_subplans(expression)
    }
}

/// Returns whether an expression may have different values in different rows of the query. Then no range of an index serves it.
///
/// # Safety It must be an expression.
pub unsafe fn depends_on_row(expression: *mut pg_sys::Node) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        if is_a(expression, pg_sys::NodeTag::T_Const) {
            return false;
        }
        // There may be sub-queries; the planner's own `contain_agg_clause` asserts that there are none.
        pg_sys::contain_vars_of_level(expression, 0)
            || pg_sys::contain_aggs_of_level(expression, 0)
            || pg_sys::contain_windowfuncs(expression)
    }
}

/// Returns whether an estimate of an expression with columns evaluates a part of it that may never be reached, and may raise an error: a
/// stable function of constants, other than `now()`.
///
/// # Safety
/// It must be an expression.
pub unsafe fn is_estimated_in_parts(expression: *mut pg_sys::Node) -> bool {
    let mut parts = Vec::new();
    let mut count = 0;
    // SAFETY: as the caller promises; the tag of a node tells its type.
    unsafe {
        let is_large = any(expression, &mut |node| {
            count += 1;
            let is_now = is_a(node, pg_sys::NodeTag::T_FuncExpr)
                && (*node.cast::<pg_sys::FuncExpr>()).funcid == pg_sys::F_NOW.into();
            if !is_atom(node)
                && !is_now
                && !is_a(node, pg_sys::NodeTag::T_List)
                && !is_a(node, pg_sys::NodeTag::T_SQLValueFunction)
            {
                parts.push(node);
            }
            count > FEW
        });
        let is_evaluated = |&part: &*mut pg_sys::Node| {
            !pg_sys::contain_vars_of_level(part, 0) && pg_sys::contain_mutable_functions(part)
        };
        is_large || parts.iter().any(is_evaluated)
    }
}

/// Returns whether a query sorts or groups by an expression that calls a function.
///
/// # Safety
/// The target list must belong to a query.
pub unsafe fn is_sorted_by_call(target_list: *mut pg_sys::List, function: pg_sys::Oid) -> bool {
    // SAFETY: as the caller promises; the tag of a node tells its type.
    unsafe {
        PgList::<pg_sys::TargetEntry>::from_pg(target_list).iter_ptr().any(|entry| {
            (*entry).ressortgroupref != 0
                && any((*entry).expr.cast(), &mut |node| {
                    let is_call = is_a(node, pg_sys::NodeTag::T_FuncExpr);
                    is_call && (*node.cast::<pg_sys::FuncExpr>()).funcid == function
                })
        })
    }
}

/// The call of a function with a column of a relation as its first argument.
pub type ColumnCall = (pg_sys::Oid, pg_sys::AttrNumber);

/// Returns whether an expression contains such a call.
///
/// # Safety
/// It must be an expression.
pub unsafe fn contains_call(expression: *mut pg_sys::Node, call: ColumnCall) -> bool {
    // SAFETY: as the caller promises.
    unsafe { any(expression, &mut |node| is_call(node, call)) }
}

/// Returns whether an expression is such a call.
///
/// # Safety
/// It must be an expression. Nothing here raises an error.
pub unsafe fn is_call(expression: *mut pg_sys::Node, (function, column): ColumnCall) -> bool {
    // SAFETY: as the caller promises; the tag of a node tells its type.
    unsafe {
        is_a(expression, pg_sys::NodeTag::T_FuncExpr) && {
            let call = &*expression.cast::<pg_sys::FuncExpr>();
            let key = PgList::<pg_sys::Node>::from_pg(call.args).get_ptr(0).map(|key| strip_conversions(key));
            call.funcid == function
                && key.is_some_and(|key| {
                    is_a(key, pg_sys::NodeTag::T_Var) && (*key.cast::<pg_sys::Var>()).varattno == column
                })
        }
    }
}

/// Returns the expression inside a node: below conversions that do not change bits, and below nodes that keep it in its place under
/// outer joins and groups, for which see [`is_nulled_apart`]. Nothing here raises an error.
///
/// # Safety The node must be an expression.
pub unsafe fn strip_conversions(mut node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: as the caller promises; the tag of a node tells its type.
    unsafe {
        loop {
            node = if is_a(node, pg_sys::NodeTag::T_RelabelType) {
                (*node.cast::<pg_sys::RelabelType>()).arg.cast()
            } else if is_a(node, pg_sys::NodeTag::T_PlaceHolderVar) {
                (*node.cast::<pg_sys::PlaceHolderVar>()).phexpr.cast()
            } else {
                return node;
            }
        }
    }
}

/// Returns whether an outer join may make a part of an expression NULL in a row without making the columns of a relation NULL.
///
/// # Safety It must be an expression.
pub unsafe fn is_nulled_apart(expression: *mut pg_sys::Node, relation: pg_sys::Index) -> bool {
    // SAFETY: as the caller promises; the tag of a node tells its type.
    unsafe {
        any(expression, &mut |node| {
            let place = node.cast::<pg_sys::PlaceHolderVar>();
            is_a(node, pg_sys::NodeTag::T_PlaceHolderVar)
                && ((*place).phlevelsup != 0 || may_be_nulled(&*place, relation))
        })
    }
}

/// Version 15 does not record which outer joins make a value NULL. They do that to the value and to the relations that it is
/// computed beside; a lateral reference in it can be to another relation.
#[cfg(feature = "pg15")]
unsafe fn may_be_nulled(place: &pg_sys::PlaceHolderVar, relation: pg_sys::Index) -> bool {
    // SAFETY: the set is complete.
    unsafe { !pg_sys::bms_is_member(relation as i32, place.phrels) }
}

#[cfg(not(feature = "pg15"))]
unsafe fn may_be_nulled(place: &pg_sys::PlaceHolderVar, _relation: pg_sys::Index) -> bool {
    !place.phnullingrels.is_null()
}

type Look<'a> = &'a mut dyn FnMut(*mut pg_sys::Node) -> bool;

/// Walks through an expression, but not into its queries, until `look` finds something. `look` must not raise an error.
unsafe fn any(expression: *mut pg_sys::Node, mut look: Look) -> bool {
    // SAFETY: it is an expression, and `step` gets `look` back. If the stack is too deep, an error jumps only over frames of `step`
    // and PostgreSQL.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| step(expression, (&raw mut look).cast())) }
}

unsafe extern "C-unwind" fn step(node: *mut pg_sys::Node, look: *mut c_void) -> bool {
    // SAFETY: by `any`, these are a node of an expression, or null where a node is optional, and the closure.
    unsafe { !node.is_null() && ((*look.cast::<Look>())(node) || expression_tree_walker(node, step, look)) }
}

pub(super) type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

unsafe extern "C-unwind" {
    /// pgrx's own declaration is guarded. At each level, its guard would take more of the stack than the expression itself.
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
    pub(super) fn expression_tree_walker(node: *mut pg_sys::Node, walker: Walker, context: *mut c_void) -> bool;
}
