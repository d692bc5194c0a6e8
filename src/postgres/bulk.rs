//! Which call sites belong to a statement that loads many rows, and to nothing else.
//!
//! Such a call site ends with the statement of a client, so whatever happens in it is over when the client sends the next one. A call
//! site in a function may live longer: PL/pgSQL keeps it for the rest of the transaction.
#![allow(unsafe_code, reason = "reads PostgreSQL's memory contexts and portals")]

use std::ffi::CStr;

use pgrx::pg_sys;

use super::call::Call;
use super::nodes::elements;

/// Returns whether the call site of a call belongs to COPY, or to a statement that a client has sent without a cursor.
pub fn is_in_bulk(call: Call) -> bool {
    // SAFETY: a call from a query has a call site, in a context that lives; names are C strings or null. The active portal, if there
    // is one, and its statements live as long as it runs.
    unsafe {
        let Some(call_site) = (*call.raw()).flinfo.as_ref() else { return false };
        let context = &*call_site.fn_mcxt;
        let name = if context.name.is_null() { c"" } else { CStr::from_ptr(context.name) };
        if name == c"COPY" {
            return true;
        }
        let Some(portal) = pg_sys::ActivePortal.as_ref() else { return false };
        let is_planned = |statement: &*mut pg_sys::Node| {
            (*statement.cast::<pg_sys::PlannedStmt>()).commandType != pg_sys::CmdType::CMD_UTILITY
        };
        // A cursor has a name, and other statements run while it is open.
        name == c"ExecutorState"
            && context.parent == portal.portalContext
            && CStr::from_ptr(portal.name).is_empty()
            && elements(portal.stmts).iter().all(is_planned)
    }
}
