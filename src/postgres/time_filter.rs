//! Filters by time: finds conditions `time(key) >= instant` whose equivalent on the key, `key >= since(instant)`, makes a better
//! plan.
#![allow(unsafe_code, reason = "reads nodes of plans")]

use flake_core::ContiguousIds;
use pgrx::{PgList, is_a, pg_sys};

use super::call::{Argument, Function, Text};
use super::catalog::btree_family;
use super::expressions::{contains_call, is_cheap, is_estimated_in_parts, is_nulled_apart, strip_conversions};
use super::relation_uses::is_used;

/// A function that returns the time of its first argument, a key.
pub struct TimeFunction {
    /// Its support function, which identifies it.
    pub support: Function,
    /// Returns the keys that have a time, given the function's second argument if it has one, or None if a range of them is not a
    /// range of time.
    pub contiguous: fn(Option<Text<'_>>) -> Option<ContiguousIds>,
}

/// A relation that the planner has looked up, with the conditions of its query.
pub struct Relation<'a> {
    pub root: *mut pg_sys::PlannerInfo,
    pub rel: &'a pg_sys::RelOptInfo,
    pub oid: pg_sys::Oid,
    pub has_children: bool,
    pub quals: Vec<*mut pg_sys::List>,
    pub functions: &'a [TimeFunction; 2],
}

/// A filter by time that is equivalent to a range of keys.
pub struct Filter<'a> {
    pub call: &'a pg_sys::FuncExpr,
    /// The condition, if the filter has the form `CASE WHEN condition THEN time(key) END`.
    pub condition: Option<*mut pg_sys::Node>,
    pub key: *mut pg_sys::Var,
    /// The arguments of the call after the key, which are constants.
    pub more: Vec<*mut pg_sys::Node>,
    pub contiguous: ContiguousIds,
    /// How the time is compared with the instant, as a B-tree strategy.
    pub strategy: u32,
    pub instant: *mut pg_sys::Node,
    pub instant_type: pg_sys::Oid,
}

pub const EQUAL: u32 = pg_sys::BTEqualStrategyNumber;

/// Returns whether a condition looks like a filter by time. Nothing here raises an error.
///
/// # Safety
/// It must be a condition of the query that is planned.
pub unsafe fn may_be_filter(qual: *mut pg_sys::Node) -> bool {
    // SAFETY: as the caller promises.
    unsafe { sides(qual).is_some_and(|sides| sides.into_iter().any(|side| TimeOf::read(side).is_some())) }
}

/// Returns both sides of a comparison.
unsafe fn sides(qual: *mut pg_sys::Node) -> Option<[*mut pg_sys::Node; 2]> {
    // SAFETY: the tag of a node tells its type.
    unsafe {
        if !is_a(qual, pg_sys::NodeTag::T_OpExpr) {
            return None;
        }
        let arguments = PgList::<pg_sys::Node>::from_pg((*qual.cast::<pg_sys::OpExpr>()).args);
        Some([arguments.get_ptr(0)?, arguments.get_ptr(1)?])
    }
}

/// `time(key, …)`, or `CASE WHEN condition THEN time(key, …) END`.
struct TimeOf<'a> {
    call: &'a pg_sys::FuncExpr,
    condition: Option<*mut pg_sys::Node>,
}

impl TimeOf<'_> {
    unsafe fn read(node: *mut pg_sys::Node) -> Option<Self> {
        // SAFETY: the tag of a node tells its type.
        unsafe {
            let node = strip_conversions(node);
            if is_a(node, pg_sys::NodeTag::T_FuncExpr) {
                let call = &*node.cast::<pg_sys::FuncExpr>();
                return (call.funcresulttype == pg_sys::TIMESTAMPTZOID).then_some(Self { call, condition: None });
            }
            if !is_a(node, pg_sys::NodeTag::T_CaseExpr) {
                return None;
            }
            let case = &*node.cast::<pg_sys::CaseExpr>();
            let branches = PgList::<pg_sys::CaseWhen>::from_pg(case.args);
            let otherwise = case.defresult.cast::<pg_sys::Const>();
            let is_null =
                otherwise.is_null() || is_a(otherwise.cast(), pg_sys::NodeTag::T_Const) && (*otherwise).constisnull;
            if !case.arg.is_null() || branches.len() != 1 || !is_null {
                return None;
            }
            let branch = &*branches.get_ptr(0)?;
            let inner = Self::read(branch.result.cast()).filter(|inner| inner.condition.is_none())?;
            Some(Self { condition: Some(branch.expr.cast()), ..inner })
        }
    }
}

impl<'a> Relation<'a> {
    /// Reads a condition as a filter by the time of a key in this relation. Returns None if a range might make the plan worse.
    ///
    /// # Safety It must be one of the query's conditions.
    pub unsafe fn filter(&self, qual: *mut pg_sys::Node) -> Option<Filter<'a>> {
        // SAFETY: as the caller promises.
        unsafe { self.read(qual).filter(|filter| self.gains(filter, qual)) }
    }

    unsafe fn read(&self, qual: *mut pg_sys::Node) -> Option<Filter<'a>> {
        // SAFETY: the tag of a node tells its type; the lookups return an invalid OID for what does not exist.
        unsafe {
            let [left, right] = sides(qual)?;
            let compared = (*qual.cast::<pg_sys::OpExpr>()).opno;
            let own =
                |side| TimeOf::read(side).filter(|time| self.is_own(time) && !is_nulled_apart(side, self.rel.relid));
            let (time, instant, operator) = match own(left) {
                Some(time) => (time, right, compared),
                None => (own(right)?, left, pg_sys::get_commutator(compared)),
            };
            let function = self.function(time.call.funcid)?;
            let strategy = pg_sys::get_op_opfamily_strategy(operator, btree_family(pg_sys::TIMESTAMPTZOID)) as u32;
            // A user's operator may lack a commutator.
            if strategy == 0 {
                return None;
            }
            let (mut time_type, mut instant_type) = Default::default();
            pg_sys::op_input_types(operator, &raw mut time_type, &raw mut instant_type);
            if time_type != pg_sys::TIMESTAMPTZOID {
                return None;
            }
            let arguments = PgList::<pg_sys::Node>::from_pg(time.call.args);
            let more: Vec<_> = arguments.iter_ptr().skip(1).collect();
            let constants = more.iter().map(|&argument| {
                let constant = argument.cast::<pg_sys::Const>();
                (is_a(argument, pg_sys::NodeTag::T_Const) && !(*constant).constisnull).then(|| (*constant).constvalue)
            });
            let constants = constants.collect::<Option<Vec<_>>>()?;
            let contiguous = (function.contiguous)(constants.first().map(|&constant| Text::from_datum(constant)))?;
            let key = strip_conversions(arguments.get_ptr(0)?).cast();
            let TimeOf { call, condition } = time;
            Some(Filter { call, condition, key, more, contiguous, strategy, instant, instant_type })
        }
    }

    /// Returns whether the key is a column of this relation, and whether the condition concerns its rows.
    unsafe fn is_own(&self, time: &TimeOf<'_>) -> bool {
        // SAFETY: the tag of a node tells its type.
        unsafe {
            let Some(key) =
                PgList::<pg_sys::Node>::from_pg(time.call.args).get_ptr(0).map(|key| strip_conversions(key))
            else {
                return false;
            };
            let var = key.cast::<pg_sys::Var>();
            is_a(key, pg_sys::NodeTag::T_Var)
                && ((*var).varno as u32, (*var).varlevelsup) == (self.rel.relid, 0)
                && (*var).varattno > 0
                && time.condition.is_none_or(|condition| {
                    pg_sys::bms_equal(pg_sys::pull_varnos(self.root, condition), self.rel.relids)
                        && !pg_sys::contain_volatile_functions(condition)
                        && !pg_sys::contain_subplans(condition)
                })
        }
    }

    /// Returns a function's entry, which is found by its support function: a function of the same name may have none, or another.
    unsafe fn function(&self, function: pg_sys::Oid) -> Option<&'a TimeFunction> {
        // SAFETY: the lookup returns an invalid OID if there is no support function; if there is one, it has been called.
        unsafe {
            let support = pg_sys::get_func_support(function);
            if support == pg_sys::InvalidOid {
                return None;
            }
            let mut found = pg_sys::FmgrInfo::default();
            pg_sys::fmgr_info(support, &raw mut found);
            let address = found.fn_addr? as usize;
            self.functions.iter().find(|function| function.support as usize == address)
        }
    }

    unsafe fn gains(&self, filter: &Filter<'_>, qual: *mut pg_sys::Node) -> bool {
        // SAFETY: the nodes belong to the query.
        unsafe {
            let others = pg_sys::pull_varnos(self.root, filter.instant);
            let is_written_twice = filter.strategy == EQUAL || filter.contiguous.turns_negative;
            // The children of an inheritance parent have constraints of their own, which the planner checks.
            let is_parent = self.has_children && self.rel.part_scheme.is_null();
            !is_parent
                && !pg_sys::bms_is_member(self.rel.relid as i32, others)
                && !pg_sys::contain_volatile_functions(filter.instant)
                && !pg_sys::contain_subplans(filter.instant)
                && (others.is_null() || !is_estimated_in_parts(filter.instant))
                && (!is_written_twice || is_cheap(self.root, filter.instant))
                && (filter.strategy != EQUAL || others.is_null() && !self.is_equal_elsewhere(filter, qual))
                && !is_used(self.oid, self.rel, (filter.call.funcid, (*filter.key).varattno))
        }
    }

    /// Returns whether another equality says that the same call is equal to a column. Then this column is equal to the constant.
    unsafe fn is_equal_elsewhere(&self, filter: &Filter<'_>, qual: *mut pg_sys::Node) -> bool {
        // SAFETY: the nodes belong to the query.
        unsafe {
            let family = btree_family(pg_sys::TIMESTAMPTZOID);
            let is_such = |other: *mut pg_sys::Node| {
                other != qual
                    && sides(other)
                        .is_some_and(|sides| sides.iter().all(|&side| pg_sys::contain_vars_of_level(side, 0)))
                    && pg_sys::get_op_opfamily_strategy((*other.cast::<pg_sys::OpExpr>()).opno, family) as u32 == EQUAL
                    && contains_call(other, (filter.call.funcid, (*filter.key).varattno))
            };
            self.quals.iter().any(|&quals| PgList::<pg_sys::Node>::from_pg(quals).iter_ptr().any(is_such))
        }
    }
}
