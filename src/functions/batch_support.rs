//! flake_batch_support: tells the planner how many rows flake_batch returns.
#![allow(unsafe_code, reason = "reads nodes of plans")]

use pgrx::{FromDatum, PgList, is_a, pg_sys};

use crate::postgres::entry_point::entry_point;

// A null pointer tells the planner that the request was not answered.
entry_point!(flake_batch_support(request: *mut pg_sys::Node), |call| {
    // SAFETY: the request is a node, whose tag says of which kind.
    let is_answered = unsafe {
        is_a(request, pg_sys::NodeTag::T_SupportRequestRows)
            && pg_sys::panic::pgrx_extern_c_guard(|| {
                pgrx::check_for_interrupts!();
                tell_rows(&mut *request.cast()).is_some()
            })
    };
    pg_sys::Datum::from(if is_answered { request } else { std::ptr::null_mut() })
});

/// Answers if the count is known.
///
/// # Safety
/// The request must be the planner's, for a call of flake_batch.
unsafe fn tell_rows(request: &mut pg_sys::SupportRequestRows) -> Option<()> {
    // SAFETY: as the caller promises; the tag of a node says of which type it is.
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
    // NULL and 0 return no rows. The planner itself estimates at least one.
    request.rows = f64::from(count.unwrap_or(0).max(0));
    Some(())
}
