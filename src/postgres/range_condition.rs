//! Planner support for functions that ask whether a key lies in a range. The planner replaces the call `during(key, span, …)` by
//! `key >= first(span, …) AND key <= last(span, …)`, so that indexes and partitions are used.
#![allow(unsafe_code, reason = "reads and builds nodes of plans")]

use std::ptr;
use std::slice;

use pgrx::{is_a, pg_sys};

use super::call::{Argument, Text};
use super::catalog::{in_schema, may_call, operator};
use super::expressions::{depends_on_row, is_atom, is_cheap, is_estimated_in_parts, is_small, is_sorted_by_call};
use super::extension::PLAN_SCHEMA;
use super::guard::guarded;
use super::nodes::{self, and, copy, elements};

/// Returns whether a range exists for the constant argument after the span, and the span if it is a constant too. Planning must not
/// raise an error, because `during` may never be called.
pub type HasRange = fn(Text<'_>, Option<pg_sys::Datum>) -> bool;

/// Returns a support function's answer; a null pointer tells the planner that the request was not answered.
///
/// # Safety The request must be the planner's. If the call returns a boolean, its arguments must be the key and the arguments of
/// `first` and `last` in [`PLAN_SCHEMA`], which must return keys of the same type.
pub unsafe fn answer(request: *mut pg_sys::Node, has_range: HasRange) -> pg_sys::Datum {
    // SAFETY: as the caller promises; the tag of a node tells its type.
    let condition = unsafe {
        let request = is_a(request, pg_sys::NodeTag::T_SupportRequestSimplify)
            .then(|| &*request.cast::<pg_sys::SupportRequestSimplify>())
            // Functions that return the time of a key also call this, so that the library is loaded; see `time_filter`.
            .filter(|request| (*request.fcall).funcresulttype == pg_sys::BOOLOID);
        request.map(|request| {
            guarded(|| {
                pgrx::check_for_interrupts!();
                range_condition(request.root, &*request.fcall, has_range)
            })
        })
    };
    pg_sys::Datum::from(condition.flatten().unwrap_or(ptr::null_mut()))
}

/// Returns the condition, or None if the call must stay. The condition contains the span twice. If large expressions were written
/// twice, calls in the arguments of calls would double at each level, and a sub-query could return two different spans.
///
/// # Safety As for [`answer`].
unsafe fn range_condition(
    root: *mut pg_sys::PlannerInfo,
    call: &pg_sys::FuncExpr,
    has_range: HasRange,
) -> Option<*mut pg_sys::Node> {
    // SAFETY: as the caller promises; these functions of PostgreSQL take a node or a list of nodes.
    unsafe {
        let all = call.args.cast();
        let arguments = elements(call.args);
        let &key = arguments.first()?;
        if let Some(&more) = arguments.get(2).filter(|&&argument| is_a(argument, pg_sys::NodeTag::T_Const)) {
            let is_fine = |more| has_range(Text::from_datum(more), constant(arguments[1]));
            if !constant(more).is_some_and(is_fine) {
                return None;
            }
        }
        // If the call has the same result in every row, no index serves it, and a range gains nothing.
        if !is_cheap(root, key) || !depends_on_row(all) {
            return None;
        }
        let span = &arguments[1..];
        let may_stand_twice = |(number, &argument): (usize, &*mut pg_sys::Node)| match depends_on_row(argument) {
            false => is_atom(argument) || is_small(argument),
            true => number == 0 && is_cheap(root, argument) && !is_estimated_in_parts(argument),
        };
        if !span.iter().enumerate().all(may_stand_twice) {
            return None;
        }
        let changes = |&argument: &*mut pg_sys::Node| {
            !is_atom(argument)
                && (pg_sys::contain_volatile_functions(argument) || pg_sys::expression_returns_set(argument))
        };
        if arguments.iter().any(changes) || is_grouped(root, call) {
            return None;
        }
        let (mut types, mut count) = (ptr::null_mut(), 0);
        pg_sys::get_func_signature(call.funcid, &raw mut types, &raw mut count);
        let (&key_type, others) = slice::from_raw_parts(types, count as usize).split_first()?;
        if !may_call(call.funcid) {
            return None;
        }
        // A plan that contains only the result of a function must still depend on the function.
        let depend_on = |function| {
            if !root.is_null() {
                pg_sys::record_plan_function_dependency(root, function);
            }
        };
        let comparison = |end, strategy| {
            let (function, operator) = (in_schema(PLAN_SCHEMA, end, others)?, operator(key_type, strategy)?);
            depend_on(function);
            let bound = result(root, function, key_type, span, call.inputcollid).cast();
            let none = pg_sys::InvalidOid;
            Some(pg_sys::make_opclause(operator, pg_sys::BOOLOID, false, copy(key).cast(), bound, none, none).cast())
        };
        let lower = comparison(c"first", pg_sys::BTGreaterEqualStrategyNumber)?;
        let upper = comparison(c"last", pg_sys::BTLessEqualStrategyNumber)?;
        depend_on(call.funcid);
        Some(and(&[lower, upper]))
    }
}

/// Returns whether the query may group by the call in several ways. Before version 18, PostgreSQL does not find the grouped
/// expression again if a condition around it is flattened together with it.
unsafe fn is_grouped(root: *mut pg_sys::PlannerInfo, call: &pg_sys::FuncExpr) -> bool {
    // SAFETY: the planner's query is complete.
    unsafe {
        let Some(query) = root.as_ref().and_then(|root| root.parse.as_ref()) else { return false };
        cfg!(any(feature = "pg15", feature = "pg16", feature = "pg17"))
            && !query.groupingSets.is_null()
            && is_sorted_by_call(query.targetList, call.funcid)
    }
}

/// Returns the value of a constant that is not NULL.
unsafe fn constant(argument: *mut pg_sys::Node) -> Option<pg_sys::Datum> {
    // SAFETY: the tag of a node tells its type.
    let constant = unsafe { is_a(argument, pg_sys::NodeTag::T_Const).then(|| &*argument.cast::<pg_sys::Const>()) };
    constant.filter(|constant| !constant.constisnull).map(|constant| constant.constvalue)
}

/// Returns the result of an immutable function if its arguments are constants, so that statistics and partitions can be compared
/// with it. PostgreSQL would create an executor for that.
unsafe fn result(
    root: *mut pg_sys::PlannerInfo,
    function: pg_sys::Oid,
    of: pg_sys::Oid,
    arguments: &[*mut pg_sys::Node],
    collation: pg_sys::Oid,
) -> *mut pg_sys::Node {
    // SAFETY: it takes these arguments; the cache of types has a row for each; nodes in two places are copied.
    unsafe {
        let value = match *arguments {
            [span] => constant(span).map(|span| pg_sys::OidFunctionCall1Coll(function, collation, span)),
            [span, layout] => constant(span)
                .zip(constant(layout))
                .map(|(span, layout)| pg_sys::OidFunctionCall2Coll(function, collation, span, layout)),
            _ => None,
        };
        if let Some(value) = value {
            let pg_sys::TypeCacheEntry { typlen, typbyval, .. } = *pg_sys::lookup_type_cache(of, 0);
            return pg_sys::makeConst(of, -1, pg_sys::InvalidOid, typlen.into(), value, false, typbyval).cast();
        }
        let arguments: Vec<_> = arguments.iter().map(|&argument| copy(argument)).collect();
        pg_sys::eval_const_expressions(root, nodes::call(function, of, &arguments, collation))
    }
}
