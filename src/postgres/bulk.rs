//! Which call sites of nextval belong to a statement that loads many rows, while nothing else can use a sequence or read lastval().
//!
//! Such a call site ends with the statement of a client, so whatever happens in it is over when the client sends the next one. A call
//! site in a function may live longer: PL/pgSQL keeps it for the rest of the transaction. A plan or a table of another kind counts as
//! one that reads lastval().
#![allow(unsafe_code, reason = "reads PostgreSQL's memory contexts, portals and plans")]

use std::ffi::{CStr, c_char, c_void};
use std::{ptr, slice};

use pgrx::pg_sys::{self, NodeTag, Oid};
use pgrx::{PgList, is_a};

use super::call::Call;
use super::catalog::in_schema;
use super::expressions::expression_tree_walker;
use super::nodes::elements;

type Node = *mut pg_sys::Node;

/// Returns whether the call site of a call belongs to such a statement: one of a client, without a cursor. `is_own_sequence` says whether the
/// session makes IDs for a sequence.
pub fn is_in_bulk(call: Call, is_own_sequence: fn(Oid) -> bool) -> bool {
    // SAFETY: a call from a query has a call site, in a context that lives; names are C strings or null. The active portal, if there
    // is one, and its statements live as long as it runs.
    unsafe {
        let Some(call_site) = (*call.raw()).flinfo.as_ref() else { return false };
        let Some(portal) = pg_sys::ActivePortal.as_ref() else { return false };
        let context = &*call_site.fn_mcxt;
        let [statement] = *elements(portal.stmts) else { return false };
        let statement = &*statement.cast::<pg_sys::PlannedStmt>();
        // A cursor has a name, and other statements run while it is open.
        let is_of_client = context.parent == portal.portalContext && CStr::from_ptr(portal.name).is_empty();
        if context.name.is_null() || !is_of_client {
            return false;
        }
        let calls = Calls::new(is_own_sequence);
        match CStr::from_ptr(context.name).to_bytes() {
            b"COPY" => calls.alone_in_copy(statement.utilityStmt),
            b"ExecutorState" => statement.utilityStmt.is_null() && calls.alone_in_statement(statement),
            _ => false,
        }
    }
}

/// The only calls of functions that use a sequence and are harmless.
struct Calls {
    nextval: Option<Oid>,
    is_own_sequence: fn(Oid) -> bool,
}

impl Calls {
    fn new(is_own_sequence: fn(Oid) -> bool) -> Self {
        // SAFETY: it looks the function up in the catalog.
        let nextval = unsafe { in_schema(c"flake_sequences", c"nextval", &[pg_sys::REGCLASSOID]) };
        Self { nextval, is_own_sequence }
    }

    unsafe fn alone_in_copy(&self, statement: Node) -> bool {
        // SAFETY: the tag of a node tells its type. COPY has locked its table.
        unsafe {
            if statement.is_null() || !is_a(statement, NodeTag::T_CopyStmt) {
                return false;
            }
            let copy = &*statement.cast::<pg_sys::CopyStmt>();
            if copy.relation.is_null() || !copy.whereClause.is_null() {
                return false;
            }
            let (missing, lock) = (pg_sys::RVROption::RVR_MISSING_OK, pg_sys::NoLock as pg_sys::LOCKMODE);
            let table = pg_sys::RangeVarGetRelidExtended(copy.relation, lock, missing, None, ptr::null_mut());
            table != Oid::INVALID && self.alone_in_table(table)
        }
    }

    unsafe fn alone_in_statement(&self, statement: &pg_sys::PlannedStmt) -> bool {
        // SAFETY: the tag of a node tells its type. The statement has locked its tables.
        unsafe {
            let plan = statement.planTree;
            let of_table = if is_a(plan.cast(), NodeTag::T_ModifyTable) {
                let target = &*plan.cast::<pg_sys::ModifyTable>();
                let entry = pg_sys::list_nth_int(target.resultRelations, 0) as usize;
                let entry = elements(statement.rtable)[entry - 1].cast::<pg_sys::RangeTblEntry>();
                let is_plain = target.operation == pg_sys::CmdType::CMD_INSERT
                    && target.onConflictAction == pg_sys::OnConflictAction::ONCONFLICT_NONE
                    && target.withCheckOptionLists.is_null()
                    && target.returningLists.is_null();
                is_plain && self.alone_in_table((*entry).relid) && self.alone_in_plan(target.plan.lefttree)
            } else {
                self.alone_in_plan(plan)
            };
            of_table && elements(statement.subplans).iter().all(|&plan| self.alone_in_plan(plan.cast()))
        }
    }

    /// Looks at a table into which rows are inserted: at triggers of users, and at whatever is evaluated for each row.
    unsafe fn alone_in_table(&self, table: Oid) -> bool {
        // SAFETY: the table is locked; its cache entry is there until it is closed.
        unsafe {
            let relation = pg_sys::table_open(table, pg_sys::NoLock as pg_sys::LOCKMODE);
            let (row, triggers) = (&*(*relation).rd_att, (*relation).trigdesc.as_ref());
            let triggers =
                triggers.map_or(&[][..], |all| slice::from_raw_parts(all.triggers, all.numtriggers as usize));
            let is_of_user = |trigger: &pg_sys::Trigger| {
                !trigger.tgisinternal && trigger.tgtype as u32 & pg_sys::TRIGGER_TYPE_INSERT != 0
            };
            let is_plain = (*(*relation).rd_rel).relkind as u8 == pg_sys::RELKIND_RELATION
                && !triggers.iter().any(is_of_user)
                && row.constr.as_ref().is_none_or(|own| {
                    (0..own.num_defval.into()).all(|n| self.alone_in_text((*own.defval.add(n)).adbin))
                        && (0..own.num_check.into()).all(|n| self.alone_in_text((*own.check.add(n)).ccbin))
                })
                && !(1..=row.natts as i16).any(|column| is_domain(pg_sys::get_atttype(table, column)));
            pg_sys::table_close(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
            // An identity column has no default.
            is_plain && PgList::<()>::from_pg(pg_sys::getOwnedSequences(table)).iter_oid().all(self.is_own_sequence)
        }
    }

    unsafe fn alone_in_text(&self, stored: *const c_char) -> bool {
        // SAFETY: it is an expression of the catalog.
        unsafe { self.alone_in_expression(pg_sys::stringToNode(stored).cast()) }
    }

    /// Looks at a plan of the simple kinds whose expressions are all known here.
    unsafe fn alone_in_plan(&self, plan: *mut pg_sys::Plan) -> bool {
        if plan.is_null() {
            return true;
        }
        let (no_node, no_plan) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the tag of a node tells its type.
        unsafe {
            let (own, below) = match (*plan).type_ {
                NodeTag::T_Result => ((*plan.cast::<pg_sys::Result>()).resconstantqual, no_plan),
                NodeTag::T_FunctionScan => ((*plan.cast::<pg_sys::FunctionScan>()).functions.cast(), no_plan),
                NodeTag::T_ValuesScan => ((*plan.cast::<pg_sys::ValuesScan>()).values_lists.cast(), no_plan),
                NodeTag::T_SubqueryScan => (no_node, (*plan.cast::<pg_sys::SubqueryScan>()).subplan),
                NodeTag::T_SeqScan | NodeTag::T_ProjectSet | NodeTag::T_Agg | NodeTag::T_Sort => (no_node, no_plan),
                _ => return false,
            };
            [own, (*plan).targetlist.cast(), (*plan).qual.cast()].iter().all(|&node| self.alone_in_expression(node))
                && [below, (*plan).lefttree, (*plan).righttree].iter().all(|&plan| self.alone_in_plan(plan))
        }
    }

    unsafe fn alone_in_expression(&self, expression: Node) -> bool {
        // SAFETY: it is an expression, a list of them, or null; `step` gets this back. An error jumps only over frames of `step` and
        // PostgreSQL.
        unsafe {
            !pg_sys::ffi::pg_guard_ffi_boundary(|| step(expression, ptr::from_ref(self).cast_mut().cast::<c_void>()))
        }
    }

    unsafe fn is_id(&self, node: Node) -> bool {
        // SAFETY: the tag of a node tells its type; a regclass is passed by value.
        unsafe {
            if !is_a(node, NodeTag::T_FuncExpr) || Some((*node.cast::<pg_sys::FuncExpr>()).funcid) != self.nextval {
                return false;
            }
            let [argument] = *elements((*node.cast::<pg_sys::FuncExpr>()).args) else { return false };
            let sequence = argument.cast::<pg_sys::Const>();
            is_a(argument, NodeTag::T_Const)
                && !(*sequence).constisnull
                && (self.is_own_sequence)(Oid::from((*sequence).constvalue.value() as u32))
        }
    }
}

/// Returns whether a node may use a sequence, or something in it. Only a volatile function may, or the CHECK of a domain.
unsafe extern "C-unwind" fn step(node: Node, calls: *mut c_void) -> bool {
    unsafe extern "C-unwind" fn is_volatile(function: Oid, _: *mut c_void) -> bool {
        // SAFETY: it looks the function up in the catalog.
        unsafe { func_volatile(function) as u8 == pg_sys::PROVOLATILE_VOLATILE }
    }
    // SAFETY: these are a node of an expression, or null where a node is optional, and the calls.
    unsafe {
        !node.is_null()
            && !(*calls.cast::<Calls>()).is_id(node)
            && (is_a(node, NodeTag::T_CoerceToDomain)
                || check_functions_in_node(node, is_volatile, calls)
                || expression_tree_walker(node, step, calls))
    }
}

unsafe fn is_domain(of: Oid) -> bool {
    // SAFETY: it looks the type up in the catalog.
    unsafe { pg_sys::get_typtype(of) as u8 == pg_sys::TYPTYPE_DOMAIN }
}

unsafe extern "C-unwind" {
    /// Unguarded, as [`expression_tree_walker`] is.
    fn check_functions_in_node(
        node: Node,
        checker: unsafe extern "C-unwind" fn(Oid, *mut c_void) -> bool,
        context: *mut c_void,
    ) -> bool;
    fn func_volatile(function: Oid) -> c_char;
}
