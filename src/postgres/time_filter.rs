//! Filters by time, `time(key) >= instant`, which the planner replaces by the same filter of the key, `key >= since(instant)`, so
//! that indexes, partitions and statistics of the key serve it.
//!
//! The function that returns the time names a support function of this library, which PostgreSQL calls before it looks up any
//! relation of the query. So the library is there when the hook is called with the relations, even in a session's first query.
#![allow(unsafe_code, reason = "reads and builds nodes of plans")]

use std::ffi::CStr;
use std::sync::OnceLock;

use flake_core::Solid;
use pgrx::{PgList, is_a, pg_sys};

use super::call::{Argument, Function, Text};
use super::expressions::{bare, calls_with_column, is_cheap};
use super::quals::each_list;
use super::relation_uses::{ColumnCall, is_foreign, is_used};
use super::siblings::{btree_family, copy, may_call, operator, sibling};

/// A function that returns the time of its first argument, a key.
pub struct TimeFunction {
    /// Its support function.
    pub support: Function,
    /// The functions in its schema that return the last key before an instant, the last until it, the first since it and the
    /// first after it; NULL where there is none.
    pub ends: [&'static CStr; 4],
    /// The keys that have a time, by the function's second argument if it has one; none if a range of them is none of time.
    pub solid: fn(Option<Text<'_>>) -> Option<Solid>,
}

/// The function in the same schema that returns the instant of a local time.
const INSTANT: &CStr = c"flake_instant";

const LESS: u32 = pg_sys::BTLessStrategyNumber;
const LESS_EQUAL: u32 = pg_sys::BTLessEqualStrategyNumber;
const EQUAL: u32 = pg_sys::BTEqualStrategyNumber;
const GREATER_EQUAL: u32 = pg_sys::BTGreaterEqualStrategyNumber;
const GREATER: u32 = pg_sys::BTGreaterStrategyNumber;

struct Subscribed {
    functions: [TimeFunction; 2],
    previous: pg_sys::get_relation_info_hook_type,
}

static SUBSCRIBED: OnceLock<Subscribed> = OnceLock::new();

/// Has the planner replace filters by these functions from now on.
pub fn subscribe(functions: [TimeFunction; 2]) {
    // SAFETY: a variable of this process, which has one thread.
    let subscribed = Subscribed { functions, previous: unsafe { pg_sys::get_relation_info_hook } };
    if SUBSCRIBED.set(subscribed).is_ok() {
        // SAFETY: as above; the library is never unloaded.
        unsafe { pg_sys::get_relation_info_hook = Some(at_relation) };
    }
}

unsafe extern "C-unwind" fn at_relation(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    has_children: bool,
    rel: *mut pg_sys::RelOptInfo,
) {
    let Some(subscribed) = SUBSCRIBED.get() else { return };
    // SAFETY: PostgreSQL calls this when it has looked up a relation of a query, before it distributes the conditions. Filters that
    // could be meant are looked for without a guard, as most queries have none.
    unsafe {
        if let Some(previous) = subscribed.previous {
            previous(root, relation, has_children, rel);
        }
        let (root, rel) = (&mut *root, &*rel);
        let mut is_meant = false;
        if rel.reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL && rel.rtekind == pg_sys::RTEKind::RTE_RELATION {
            each_list((*root.parse).jointree.cast(), &mut |quals| {
                is_meant |= PgList::<pg_sys::Node>::from_pg(quals).iter_ptr().any(|qual| may_be_filter(qual));
            });
        }
        if is_meant {
            pg_sys::panic::pgrx_extern_c_guard(|| {
                Relation { root, rel, relation, has_children, functions: &subscribed.functions }.replace_filters();
            });
        }
    }
}

/// Returns both sides of a comparison.
unsafe fn sides(qual: *mut pg_sys::Node) -> Option<[*mut pg_sys::Node; 2]> {
    // SAFETY: the tag of a node says of which type it is.
    unsafe {
        if !is_a(qual, pg_sys::NodeTag::T_OpExpr) {
            return None;
        }
        let arguments = PgList::<pg_sys::Node>::from_pg((*qual.cast::<pg_sys::OpExpr>()).args);
        Some([arguments.get_ptr(0)?, arguments.get_ptr(1)?])
    }
}

/// Returns whether a condition looks like a filter by time. Nothing here raises an error.
unsafe fn may_be_filter(qual: *mut pg_sys::Node) -> bool {
    // SAFETY: the tag of a node says of which type it is.
    unsafe { sides(qual).is_some_and(|sides| sides.into_iter().any(|side| TimeOf::read(side).is_some())) }
}

/// `time(key, …)`, or `CASE WHEN condition THEN time(key, …) END`.
struct TimeOf<'a> {
    call: &'a pg_sys::FuncExpr,
    condition: Option<*mut pg_sys::Node>,
}

impl TimeOf<'_> {
    unsafe fn read(node: *mut pg_sys::Node) -> Option<Self> {
        // SAFETY: the tag of a node says of which type it is.
        unsafe {
            let node = bare(node);
            if is_a(node, pg_sys::NodeTag::T_FuncExpr) {
                let call = &*node.cast::<pg_sys::FuncExpr>();
                return (call.funcresulttype == pg_sys::TIMESTAMPTZOID).then_some(Self { call, condition: None });
            }
            if !is_a(node, pg_sys::NodeTag::T_CaseExpr) {
                return None;
            }
            let case = &*node.cast::<pg_sys::CaseExpr>();
            let branches = PgList::<pg_sys::CaseWhen>::from_pg(case.args);
            let is_null = case.defresult.is_null()
                || is_a(case.defresult.cast(), pg_sys::NodeTag::T_Const)
                    && (*case.defresult.cast::<pg_sys::Const>()).constisnull;
            if !case.arg.is_null() || branches.len() != 1 || !is_null {
                return None;
            }
            let branch = &*branches.get_ptr(0)?;
            let inner = Self::read(branch.result.cast()).filter(|inner| inner.condition.is_none())?;
            Some(Self { condition: Some(branch.expr.cast()), ..inner })
        }
    }
}

/// A filter by time that has a range of keys.
struct Filter<'a> {
    function: &'a TimeFunction,
    call: &'a pg_sys::FuncExpr,
    condition: Option<*mut pg_sys::Node>,
    var: *mut pg_sys::Var,
    /// The arguments of the call behind the key.
    more: Vec<*mut pg_sys::Node>,
    solid: Solid,
    strategy: u32,
    instant: *mut pg_sys::Node,
    instant_type: pg_sys::Oid,
}

impl Filter<'_> {
    fn column_call(&self) -> ColumnCall {
        // SAFETY: the variable is one of the query's.
        ColumnCall { function: self.call.funcid, column: unsafe { (*self.var).varattno } }
    }
}

/// A relation that the planner has looked up.
struct Relation<'a> {
    root: &'a mut pg_sys::PlannerInfo,
    rel: &'a pg_sys::RelOptInfo,
    relation: pg_sys::Oid,
    has_children: bool,
    functions: &'a [TimeFunction; 2],
}

impl<'a> Relation<'a> {
    /// Replaces what the lists of conditions contain. Nodes may be parts of other expressions too, so they stay as they are.
    unsafe fn replace_filters(&mut self) {
        // SAFETY: the join tree of the query that is planned.
        unsafe {
            let mut lists = Vec::new();
            each_list((*self.root.parse).jointree.cast(), &mut |quals| lists.push(quals));
            for &quals in &lists {
                let mut replaced = Vec::new();
                for place in 0..(*quals).length as usize {
                    let cell = (*quals).elements.add(place);
                    let qual = (*cell).ptr_value.cast::<pg_sys::Node>();
                    let Some(filter) = self.filter(qual).filter(|filter| self.gains(filter, qual, &lists)) else { continue };
                    let Some(range) = self.range(&filter, qual) else { continue };
                    // The list stays where it is while it grows, its elements do not.
                    (*cell).ptr_value = range[0].cast();
                    range[1..].iter().for_each(|&more| append(quals, more));
                    // Where no key is in the range, none has to be kept out.
                    if !is_a(range[0], pg_sys::NodeTag::T_Const) {
                        replaced.push(filter);
                    }
                }
                for filter in replaced.iter().filter(|filter| !filter.solid.turns_negative) {
                    let is_closed = |other: &Filter<'_>| {
                        other.strategy.cmp(&EQUAL) == EQUAL.cmp(&filter.strategy) && is_same(other.call, filter.call)
                    };
                    if !replaced.iter().any(is_closed) {
                        self.guards(filter).into_iter().for_each(|guard| append(quals, guard));
                    }
                }
            }
        }
    }

    /// Reads a condition as a filter by the time of a key in this relation.
    unsafe fn filter(&self, qual: *mut pg_sys::Node) -> Option<Filter<'a>> {
        // SAFETY: the tag of a node says of which type it is; the lookups return an invalid OID for what does not exist.
        unsafe {
            let [left, right] = sides(qual)?;
            let compared = (*qual.cast::<pg_sys::OpExpr>()).opno;
            let (time, instant, operator) = match TimeOf::read(left).filter(|time| self.is_ours(time)) {
                Some(time) => (time, right, compared),
                None => {
                    (TimeOf::read(right).filter(|time| self.is_ours(time))?, left, pg_sys::get_commutator(compared))
                }
            };
            let function = self.function(time.call.funcid)?;
            let strategy = pg_sys::get_op_opfamily_strategy(operator, btree_family(pg_sys::TIMESTAMPTZOID)) as u32;
            let (mut left_type, mut instant_type) = Default::default();
            pg_sys::op_input_types(operator, &raw mut left_type, &raw mut instant_type);
            let arguments = PgList::<pg_sys::Node>::from_pg(time.call.args);
            let more: Vec<_> = arguments.iter_ptr().skip(1).collect();
            let constants = more.iter().map(|&argument| {
                let constant = argument.cast::<pg_sys::Const>();
                (is_a(argument, pg_sys::NodeTag::T_Const) && !(*constant).constisnull).then(|| (*constant).constvalue)
            });
            let constants = constants.collect::<Option<Vec<_>>>()?;
            (strategy != 0 && left_type == pg_sys::TIMESTAMPTZOID).then_some(())?;
            let solid = (function.solid)(constants.first().map(|&constant| Text::from_datum(constant)))?;
            let var = bare(arguments.get_ptr(0)?).cast();
            let TimeOf { call, condition } = time;
            Some(Filter { function, call, condition, var, more, solid, strategy, instant, instant_type })
        }
    }

    /// Returns whether the key is a column of this relation, and the condition one of its rows.
    unsafe fn is_ours(&self, time: &TimeOf<'_>) -> bool {
        // SAFETY: the tag of a node says of which type it is.
        unsafe {
            let Some(key) = PgList::<pg_sys::Node>::from_pg(time.call.args).get_ptr(0).map(|key| bare(key)) else { return false };
            let var = key.cast::<pg_sys::Var>();
            is_a(key, pg_sys::NodeTag::T_Var)
                && ((*var).varno as u32, (*var).varlevelsup) == (self.rel.relid, 0)
                && (*var).varattno > 0
                && time.condition.is_none_or(|condition| {
                    pg_sys::bms_equal(pg_sys::pull_varnos(self.root_ptr(), condition), self.rel.relids)
                        && !pg_sys::contain_volatile_functions(condition)
                        && !pg_sys::contain_subplans(condition)
                })
        }
    }

    fn root_ptr(&self) -> *mut pg_sys::PlannerInfo {
        (&raw const *self.root).cast_mut()
    }

    /// Returns what is known of a function, if its support function is of this library: one of the same name has none, or another.
    unsafe fn function(&self, function: pg_sys::Oid) -> Option<&'a TimeFunction> {
        // SAFETY: the lookup returns an invalid OID where there is no support function; where there is one, it has been called.
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

    /// Returns whether the plan can only become better by a range.
    unsafe fn gains(&self, filter: &Filter<'_>, qual: *mut pg_sys::Node, lists: &[*mut pg_sys::List]) -> bool {
        // SAFETY: the nodes are those of the query.
        unsafe {
            let root = self.root_ptr();
            let others = pg_sys::pull_varnos(root, filter.instant);
            let is_written_twice = filter.strategy == EQUAL || filter.solid.turns_negative;
            // The children of an inheritance parent have constraints of their own, which the planner looks at.
            let is_parent = self.has_children && self.rel.part_scheme.is_null();
            !is_parent
                && !pg_sys::bms_is_member(self.rel.relid as i32, others)
                && !pg_sys::contain_volatile_functions(filter.instant)
                && !pg_sys::contain_subplans(filter.instant)
                && (!is_written_twice || is_cheap(root, filter.instant))
                && (filter.strategy != EQUAL || others.is_null() && !self.is_equal_elsewhere(filter, qual, lists))
                && !is_used(self.relation, self.rel, filter.column_call())
        }
    }

    /// Returns whether another equality holds the same call. All that is equal to one expression is equal to the constant.
    unsafe fn is_equal_elsewhere(&self, filter: &Filter<'_>, qual: *mut pg_sys::Node, lists: &[*mut pg_sys::List]) -> bool {
        // SAFETY: the nodes are those of the query.
        unsafe {
            let ColumnCall { function, column } = filter.column_call();
            let family = btree_family(pg_sys::TIMESTAMPTZOID);
            lists.iter().flat_map(|&quals| PgList::<pg_sys::Node>::from_pg(quals).iter_ptr().collect::<Vec<_>>()).any(|other| {
                other != qual
                    && sides(other).is_some()
                    && pg_sys::get_op_opfamily_strategy((*other.cast::<pg_sys::OpExpr>()).opno, family) as u32 == EQUAL
                    && calls_with_column(other, function, column)
            })
        }
    }

    /// Returns the conditions that take the place of a filter, all of which have to hold; none if the present role may not call
    /// what it consists of, or if a server of another version would have to.
    unsafe fn range(&mut self, filter: &Filter<'_>, qual: *mut pg_sys::Node) -> Option<Vec<*mut pg_sys::Node>> {
        // SAFETY: the nodes are those of the query; the new ones are complete.
        unsafe {
            let mut range = Vec::new();
            let [before, until, since, after] = filter.function.ends;
            let ends: &[(&CStr, u32)] = match filter.strategy {
                LESS => &[(before, LESS_EQUAL)],
                LESS_EQUAL => &[(until, LESS_EQUAL)],
                EQUAL => &[(since, GREATER_EQUAL), (until, LESS_EQUAL)],
                GREATER_EQUAL => &[(since, GREATER_EQUAL)],
                GREATER => &[(after, GREATER_EQUAL)],
                _ => return None,
            };
            for &(end, strategy) in ends {
                range.push(compared(self.key(filter), strategy, self.bound(filter, end)?)?);
            }
            if filter.solid.turns_negative {
                range.extend(self.guards(filter));
                let negative = compared(self.key(filter), LESS, int8(0))?;
                let of_time = and(vec![negative, copy(qual)]);
                range = vec![or(vec![and(range), of_time])];
            }
            range.extend(filter.condition.map(|condition| copy(condition)));
            may_call(filter.call.funcid).then_some(())?;
            pg_sys::record_plan_function_dependency(self.root, filter.call.funcid);
            Some(range)
        }
    }

    /// Returns a copy of the key.
    unsafe fn key(&self, filter: &Filter<'_>) -> *mut pg_sys::Node {
        // SAFETY: the variable is one of the query's; a domain of a type is made one of its values.
        unsafe {
            let (var, of) = (copy(filter.var), key_type(filter.call));
            if (*var).vartype == of { var.cast() } else { relabeled(var.cast(), of, -1) }
        }
    }

    /// Returns a call that returns the end of the range, or its result if that is constant.
    unsafe fn bound(&mut self, filter: &Filter<'_>, end: &CStr) -> Option<*mut pg_sys::Node> {
        // SAFETY: the nodes are those of the query; functions are found by the types of their arguments.
        unsafe {
            let call = filter.call;
            let mut instant = copy(filter.instant);
            if filter.instant_type != pg_sys::TIMESTAMPTZOID {
                instant = self.call(call, INSTANT, pg_sys::TIMESTAMPTZOID, &[instant], &[filter.instant_type])?;
            }
            let mut arguments = vec![instant];
            arguments.extend(filter.more.iter().map(|&argument| copy(argument)));
            let mut types = vec![pg_sys::TIMESTAMPTZOID];
            types.extend(filter.more.iter().map(|&argument| pg_sys::exprType(argument)));
            let bound = self.call(call, end, key_type(call), &arguments, &types)?;
            let is_constant = is_a(instant, pg_sys::NodeTag::T_Const);
            if !is_constant && is_foreign(self.relation) {
                return None;
            }
            Some(if is_constant { pg_sys::eval_const_expressions(self.root, bound) } else { bound })
        }
    }

    /// Returns a call of a function in the schema of another one.
    unsafe fn call(
        &mut self,
        beside: &pg_sys::FuncExpr,
        name: &CStr,
        result: pg_sys::Oid,
        arguments: &[*mut pg_sys::Node],
        types: &[pg_sys::Oid],
    ) -> Option<*mut pg_sys::Node> {
        // SAFETY: the function is declared with these types.
        unsafe {
            let function = sibling(beside.funcid, name, types)?;
            pg_sys::record_plan_function_dependency(self.root, function);
            let form = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
            let (none, collation) = (pg_sys::InvalidOid, beside.inputcollid);
            Some(pg_sys::makeFuncExpr(function, result, list(arguments), none, collation, form).cast())
        }
    }

    /// Returns what keeps those keys out that have no time, at the other end of the range. Where the planner does not know the
    /// instant, it must not take both for a range of the same column, of which it would expect few rows.
    unsafe fn guards(&self, filter: &Filter<'_>) -> Vec<*mut pg_sys::Node> {
        // SAFETY: the key is of type bigint where there is something to be kept out.
        unsafe {
            let Solid { lowest, highest, .. } = filter.solid;
            let (is_above, is_below) = (filter.strategy >= EQUAL, filter.strategy <= EQUAL);
            let lowest = (lowest > i64::MIN && !is_above).then_some((GREATER_EQUAL, lowest));
            let highest = (highest < i64::MAX && !is_below).then_some((LESS_EQUAL, highest));
            let instant = pg_sys::estimate_expression_value(self.root_ptr(), filter.instant);
            let is_known = is_a(instant, pg_sys::NodeTag::T_Const);
            let key = || if is_known { self.key(filter) } else { relabeled(copy(filter.var).cast(), pg_sys::INT8OID, 0) };
            lowest.into_iter().chain(highest).filter_map(|(strategy, id)| compared(key(), strategy, int8(id))).collect()
        }
    }
}

unsafe fn key_type(call: &pg_sys::FuncExpr) -> pg_sys::Oid {
    let (mut types, mut count) = (std::ptr::null_mut(), 0);
    // SAFETY: the function has a key as its first argument.
    unsafe {
        pg_sys::get_func_signature(call.funcid, &raw mut types, &raw mut count);
        *types
    }
}

/// Returns a comparison; false if the bound is NULL, which is the same in a list of conditions.
unsafe fn compared(key: *mut pg_sys::Node, strategy: u32, bound: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
    // SAFETY: both are expressions of one type.
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

unsafe fn append(quals: *mut pg_sys::List, qual: *mut pg_sys::Node) {
    // SAFETY: the list is that of conditions.
    unsafe { pg_sys::lappend(quals, qual.cast()) };
}

fn is_same(one: &pg_sys::FuncExpr, other: &pg_sys::FuncExpr) -> bool {
    // SAFETY: these are expressions.
    unsafe { pg_sys::equal((&raw const *one).cast(), (&raw const *other).cast()) }
}

unsafe fn int8(value: i64) -> *mut pg_sys::Node {
    // SAFETY: a bigint is passed by value.
    unsafe { pg_sys::makeConst(pg_sys::INT8OID, -1, pg_sys::InvalidOid, 8, value.into(), false, true).cast() }
}

unsafe fn relabeled(node: *mut pg_sys::Node, of: pg_sys::Oid, modifier: i32) -> *mut pg_sys::Node {
    let form = pg_sys::CoercionForm::COERCE_IMPLICIT_CAST;
    // SAFETY: the node is an expression of that type, or of a domain over it.
    unsafe { pg_sys::makeRelabelType(node.cast(), of, modifier, pg_sys::InvalidOid, form).cast() }
}

unsafe fn and(mut conditions: Vec<*mut pg_sys::Node>) -> *mut pg_sys::Node {
    // SAFETY: these are expressions.
    unsafe {
        if conditions.len() > 1 { pg_sys::make_andclause(list(&conditions)).cast() } else { conditions.remove(0) }
    }
}

unsafe fn or(conditions: Vec<*mut pg_sys::Node>) -> *mut pg_sys::Node {
    // SAFETY: these are expressions.
    unsafe { pg_sys::make_orclause(list(&conditions)).cast() }
}

unsafe fn list(nodes: &[*mut pg_sys::Node]) -> *mut pg_sys::List {
    let mut list = PgList::<pg_sys::Node>::new();
    nodes.iter().for_each(|&node| list.push(node));
    list.into_pg()
}
