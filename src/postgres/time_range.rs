//! The range of keys that replaces a filter by time.
#![allow(unsafe_code, reason = "builds nodes of plans")]

use std::ffi::CStr;
use std::ptr;

use flake_core::ContiguousIds;
use pgrx::{is_a, pg_sys};

use super::catalog::{in_schema, may_call};
use super::extension::PLAN_SCHEMA;
use super::nodes::{and, call, compared, copy, int8, or, relabeled};
use super::relation_uses::is_foreign;
use super::time_filter::{EQUAL, Filter, Relation};

/// The function that converts a local time to an instant.
const INSTANT: &CStr = c"instant";

const LESS: u32 = pg_sys::BTLessStrategyNumber;
const LESS_EQUAL: u32 = pg_sys::BTLessEqualStrategyNumber;
const GREATER_EQUAL: u32 = pg_sys::BTGreaterEqualStrategyNumber;
const GREATER: u32 = pg_sys::BTGreaterStrategyNumber;

impl Filter<'_> {
    /// Returns the conditions that together replace the filter, except for guards. Returns None if the current role may not call
    /// the functions in them, or if they would be sent to another server, which may not have the functions.
    ///
    /// # Safety It must be a filter of the relation, and the condition that it was read from.
    pub unsafe fn range(&self, relation: &Relation<'_>, qual: *mut pg_sys::Node) -> Option<Vec<*mut pg_sys::Node>> {
        // SAFETY: the nodes belong to the query; the new ones are complete.
        unsafe {
            // They return the last key before an instant or until it, or the first one since it or after it; NULL if there is none.
            let ends: &[(&CStr, u32)] = match self.strategy {
                LESS => &[(c"before", LESS_EQUAL)],
                LESS_EQUAL => &[(c"until", LESS_EQUAL)],
                EQUAL => &[(c"since", GREATER_EQUAL), (c"until", LESS_EQUAL)],
                GREATER_EQUAL => &[(c"since", GREATER_EQUAL)],
                GREATER => &[(c"after", GREATER_EQUAL)],
                _ => return None,
            };
            let mut range = Vec::new();
            for &(end, strategy) in ends {
                range.push(compared(self.key(), strategy, self.end(relation, end)?)?);
            }
            if self.contiguous.turns_negative {
                range.extend(self.guards(relation));
                let negative = [compared(self.key(), LESS, int8(0))?, copy(qual)];
                range = vec![or(&[and(&range), and(&negative)])];
            }
            range.extend(self.condition.map(|condition| copy(condition)));
            pg_sys::record_plan_function_dependency(relation.root, self.call.funcid);
            may_call(self.call.funcid).then_some(range)
        }
    }

    /// Returns conditions that exclude keys without a time, at the other end of the range. If the planner does not know the
    /// instant, it must not see both as a range of one column, because it would expect few rows.
    ///
    /// # Safety As for [`Self::range`].
    pub unsafe fn guards(&self, relation: &Relation<'_>) -> Vec<*mut pg_sys::Node> {
        // SAFETY: the key is a bigint if there is something to exclude.
        unsafe {
            let ContiguousIds { lowest, highest, .. } = self.contiguous;
            // PostgreSQL estimates an instant only if it has no columns; otherwise, this could call a function that is never reached.
            let is_known = !pg_sys::contain_vars_of_level(self.instant, 0) && {
                let instant = pg_sys::estimate_expression_value(relation.root, self.instant);
                is_a(instant, pg_sys::NodeTag::T_Const)
            };
            let key = || if is_known { self.key() } else { relabeled(copy(self.key).cast(), pg_sys::INT8OID, 0) };
            let lowest = (lowest > i64::MIN && self.strategy < EQUAL).then_some((GREATER_EQUAL, lowest));
            let highest = (highest < i64::MAX && self.strategy > EQUAL).then_some((LESS_EQUAL, highest));
            lowest.into_iter().chain(highest).filter_map(|(strategy, id)| compared(key(), strategy, int8(id))).collect()
        }
    }

    /// Returns whether the range of another filter by the same key ends where this filter's guard would.
    pub fn is_closed_by(&self, other: &Self) -> bool {
        // With many filters, each pair is compared, and most differ. Only the last comparison calls PostgreSQL. SAFETY: these are
        // expressions.
        unsafe {
            other.strategy.cmp(&EQUAL) == EQUAL.cmp(&self.strategy)
                && (*self.key).varattno == (*other.key).varattno
                && pg_sys::equal((&raw const *self.call).cast(), (&raw const *other.call).cast())
        }
    }

    /// Returns a copy of the key.
    unsafe fn key(&self) -> *mut pg_sys::Node {
        // SAFETY: the variable belongs to the query; a value of a domain is converted to its type.
        unsafe {
            let (var, of) = (copy(self.key), self.key_type());
            if (*var).vartype == of { var.cast() } else { relabeled(var.cast(), of, -1) }
        }
    }

    fn key_type(&self) -> pg_sys::Oid {
        let (mut types, mut count) = (ptr::null_mut(), 0);
        // SAFETY: the function has a key as its first argument.
        unsafe {
            pg_sys::get_func_signature(self.call.funcid, &raw mut types, &raw mut count);
            *types
        }
    }

    /// Returns a call that returns an end of the range, or its result if that is a constant.
    unsafe fn end(&self, relation: &Relation<'_>, name: &CStr) -> Option<*mut pg_sys::Node> {
        // SAFETY: the nodes belong to the query; functions are found by the types of their arguments.
        unsafe {
            let mut instant = copy(self.instant);
            if self.instant_type != pg_sys::TIMESTAMPTZOID {
                instant = self.call(relation, INSTANT, pg_sys::TIMESTAMPTZOID, &[(instant, self.instant_type)])?;
            }
            let more = self.more.iter().map(|&argument| (copy(argument), pg_sys::exprType(argument)));
            let arguments: Vec<_> = [(instant, pg_sys::TIMESTAMPTZOID)].into_iter().chain(more).collect();
            let end = self.call(relation, name, self.key_type(), &arguments)?;
            if is_a(instant, pg_sys::NodeTag::T_Const) {
                return Some(pg_sys::eval_const_expressions(relation.root, end));
            }
            (!is_foreign(relation.oid)).then_some(end)
        }
    }

    /// Returns a call of a function of [`PLAN_SCHEMA`].
    unsafe fn call(
        &self,
        relation: &Relation<'_>,
        name: &CStr,
        result: pg_sys::Oid,
        arguments: &[(*mut pg_sys::Node, pg_sys::Oid)],
    ) -> Option<*mut pg_sys::Node> {
        let (arguments, types): (Vec<_>, Vec<_>) = arguments.iter().copied().unzip();
        // SAFETY: the function is declared with these types.
        unsafe {
            let function = in_schema(PLAN_SCHEMA, name, &types)?;
            pg_sys::record_plan_function_dependency(relation.root, function);
            Some(call(function, result, &arguments, self.call.inputcollid))
        }
    }
}
