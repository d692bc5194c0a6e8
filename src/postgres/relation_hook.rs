//! The hook that replaces filters by time. PostgreSQL calls it when it has looked up a relation of a query: after it has simplified
//! the conditions, and before it distributes them.
//!
//! The functions that return the time of a key have a support function of this library, which PostgreSQL calls when it simplifies
//! conditions. So the library is loaded in time, even in a session's first query.
#![allow(unsafe_code, reason = "a hook of the planner")]

use std::sync::OnceLock;

use pgrx::{PgList, check_for_interrupts, is_a, pg_sys};

use super::guard::guarded;
use super::memory::push;
use super::quals::each_list;
use super::time_filter::{Relation, TimeFunction, may_be_filter};

// Since version 19, the hook has another name.
#[cfg(feature = "pg19")]
use pg_sys::{build_simple_rel_hook as HOOK, build_simple_rel_hook_type as Hook};
#[cfg(not(feature = "pg19"))]
use pg_sys::{get_relation_info_hook as HOOK, get_relation_info_hook_type as Hook};

struct Subscribed {
    functions: [TimeFunction; 2],
    previous: Hook,
}

static SUBSCRIBED: OnceLock<Subscribed> = OnceLock::new();

/// Makes the planner replace filters by these functions from now on.
pub fn subscribe(functions: [TimeFunction; 2]) {
    // SAFETY: a variable of this process, which has one thread.
    let subscribed = Subscribed { functions, previous: unsafe { HOOK } };
    if SUBSCRIBED.set(subscribed).is_ok() {
        // SAFETY: as above; the library is never unloaded.
        unsafe { HOOK = Some(at_relation) };
    }
}

#[cfg(not(feature = "pg19"))]
unsafe extern "C-unwind" fn at_relation(
    root: *mut pg_sys::PlannerInfo,
    oid: pg_sys::Oid,
    has_children: bool,
    rel: *mut pg_sys::RelOptInfo,
) {
    let Some(Subscribed { functions, previous }) = SUBSCRIBED.get() else { return };
    // SAFETY: the planner's query and its relation are complete.
    unsafe {
        if let Some(previous) = previous {
            previous(root, oid, has_children, rel);
        }
        look_at(root, oid, has_children, rel, functions);
    }
}

#[cfg(feature = "pg19")]
unsafe extern "C-unwind" fn at_relation(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    let Some(Subscribed { functions, previous }) = SUBSCRIBED.get() else { return };
    // SAFETY: the planner's query and its relation are complete.
    unsafe {
        if let Some(previous) = previous {
            previous(root, rel, entry);
        }
        look_at(root, (*entry).relid, (*entry).inh, rel, functions);
    }
}

/// # Safety
/// The planner's query and its relation must be complete.
#[inline]
unsafe fn look_at(
    root: *mut pg_sys::PlannerInfo,
    oid: pg_sys::Oid,
    has_children: bool,
    rel: *mut pg_sys::RelOptInfo,
    functions: &[TimeFunction; 2],
) {
    // SAFETY: as the caller promises. Most queries have no filter by time, and a guard would take as long as all of this, so the
    // conditions are first searched without a guard.
    unsafe {
        let (tree, rel) = ((*(*root).parse).jointree.cast(), &*rel);
        let mut is_meant = false;
        if rel.reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL && rel.rtekind == pg_sys::RTEKind::RTE_RELATION {
            each_list(tree, &mut |quals| {
                is_meant |= PgList::<pg_sys::Node>::from_pg(quals).iter_ptr().any(|qual| may_be_filter(qual));
            });
        }
        if is_meant {
            guarded(|| {
                let mut quals = Vec::new();
                each_list(tree, &mut |list| push(&mut quals, list));
                replace_filters(&Relation { root, rel, oid, has_children, quals, functions });
            });
        }
    }
}

/// Replaces filters in lists of conditions. Nodes may be parts of other expressions too, so they are not changed.
unsafe fn replace_filters(relation: &Relation<'_>) {
    // SAFETY: the lists and nodes belong to the query that is planned.
    unsafe {
        for &quals in &relation.quals {
            let mut replaced = Vec::new();
            for place in 0..(*quals).length as usize {
                check_for_interrupts!();
                let cell = (*quals).elements.add(place);
                let qual = (*cell).ptr_value.cast();
                let Some(filter) = relation.filter(qual) else { continue };
                let Some(range) = filter.range(relation, qual) else { continue };
                // The list stays in place while it grows; its elements may move.
                (*cell).ptr_value = range[0].cast();
                range[1..].iter().for_each(|&more| append(quals, more));
                // If no key is in the range, or the range includes the guards, there is nothing to add.
                if !is_a(range[0], pg_sys::NodeTag::T_Const) && !filter.contiguous.turns_negative {
                    push(&mut replaced, filter);
                }
            }
            for filter in &replaced {
                check_for_interrupts!();
                if !replaced.iter().any(|other| filter.is_closed_by(other)) {
                    filter.guards(relation).into_iter().for_each(|guard| append(quals, guard));
                }
            }
        }
    }
}

unsafe fn append(quals: *mut pg_sys::List, qual: *mut pg_sys::Node) {
    // SAFETY: the list is one of conditions, not empty.
    unsafe { pg_sys::lappend(quals, qual.cast()) };
}
