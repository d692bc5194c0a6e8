//! What the planner asks.
#![allow(unsafe_code, reason = "nodes of plans")]

use pgrx::{FromDatum, PgList, is_a, pg_sys};

use crate::postgres::call::entry_point;

// How many rows flake_batch returns. Requests of other kinds are answered with a null pointer.
entry_point!(pg_finfo_flake_batch_support, flake_batch_support, |call| {
    let request = call.datum(0);
    // SAFETY: the argument is a node, whose tag says of what kind.
    let is_answered = unsafe {
        let node = request.cast_mut_ptr::<pg_sys::Node>();
        is_a(node, pg_sys::NodeTag::T_SupportRequestRows)
            && pg_sys::panic::pgrx_extern_c_guard(|| tell_rows(&mut *node.cast()).is_some())
    };
    if is_answered { request } else { pg_sys::Datum::null() }
});

/// Answers where the count is known.
///
/// # Safety
/// The request must be the planner's, for a call of `flake_batch`.
unsafe fn tell_rows(request: &mut pg_sys::SupportRequestRows) -> Option<()> {
    // SAFETY: as the caller; nodes are as their tags say.
    let count = unsafe {
        if !is_a(request.node, pg_sys::NodeTag::T_FuncExpr) {
            return None;
        }
        let arguments = PgList::<pg_sys::Node>::from_pg((*request.node.cast::<pg_sys::FuncExpr>()).args);
        let count = pg_sys::estimate_expression_value(request.root, arguments.get_ptr(1)?);
        if !is_a(count, pg_sys::NodeTag::T_Const) {
            return None;
        }
        let count = &*count.cast::<pg_sys::Const>();
        i32::from_datum(count.constvalue, count.constisnull)
    };
    // NULL gives no rows, and so does 0; the planner takes neither for less than 1.
    request.rows = f64::from(count.unwrap_or(0).max(0));
    Some(())
}
