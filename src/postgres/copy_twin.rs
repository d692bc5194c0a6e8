//! Planner support for functions that COPY may call while it collects rows.
//!
//! COPY inserts rows one by one if a default calls a volatile function, because such a function may look at the table. Of PostgreSQL's
//! functions, only nextval() is exempt. A function of ours that looks at no table has a twin in the internal schema, which COPY
//! calls instead. The twin does the same, and is declared STABLE. No other statement may call it: ALTER TABLE … ADD COLUMN, for
//! example, takes the first result of a STABLE default for the value of every row. So the twin has one argument more, of type
//! internal, for which no user has a value.
#![allow(unsafe_code, reason = "reads and builds nodes of plans")]

use std::ffi::{CStr, CString};
use std::{ptr, slice};

use pgrx::{is_a, pg_sys};

use super::catalog::{in_schema, may_call};
use super::extension::INTERNAL_SCHEMA;
use super::nodes::{self, elements};

/// The memory context in which BeginCopyFrom() plans defaults.
const OF_COPY: &CStr = c"COPY";
/// The end of a twin's name.
const IN_COPY: &str = "_in_copy";

/// Returns a support function's answer; a null pointer tells the planner that the request was not answered.
///
/// # Safety The request must be the planner's, for a function whose C function also serves as the twin.
pub unsafe fn answer(request: *mut pg_sys::Node) -> pg_sys::Datum {
    // SAFETY: as the caller promises; the tag of a node tells its type.
    let call = unsafe {
        is_a(request, pg_sys::NodeTag::T_SupportRequestSimplify)
            .then(|| &*request.cast::<pg_sys::SupportRequestSimplify>())
            .filter(|request| request.root.is_null() && copy_is_beginning())
            .and_then(|request| pg_sys::panic::pgrx_extern_c_guard(|| twin_call(&*request.fcall)))
    };
    pg_sys::Datum::from(call.unwrap_or(ptr::null_mut()))
}

/// Returns whether the planner works on a default for COPY. ALTER TABLE has its defaults planned in other contexts, also where a
/// trigger or a function runs it during COPY. COPY of a query has a context with the same name, but whatever the planner simplifies
/// there without a query to it is immutable. PostgreSQL 19 plans a domain's CHECK in the context of the first statement that uses the
/// domain, and keeps the plan for others; it has made the context for the plan, below this one, before that.
unsafe fn copy_is_beginning() -> bool {
    // SAFETY: there is always a current context; its name is a C string, if it has one.
    unsafe {
        let context = &*pg_sys::CurrentMemoryContext;
        context.firstchild.is_null() && !context.name.is_null() && CStr::from_ptr(context.name) == OF_COPY
    }
}

/// Returns a call of the twin. PostgreSQL asks whether the role may call the twin, so this asks whether it may call the function.
///
/// # Safety The call must be complete.
unsafe fn twin_call(call: &pg_sys::FuncExpr) -> Option<*mut pg_sys::Node> {
    // SAFETY: as the caller promises. The lookups return nothing for what does not exist.
    unsafe {
        if !may_call(call.funcid) {
            return None;
        }
        let name = pg_sys::get_func_name(call.funcid);
        if name.is_null() {
            return None;
        }
        let name = CString::new([CStr::from_ptr(name).to_bytes(), IN_COPY.as_bytes()].concat()).ok()?;
        let (mut types, mut count) = (ptr::null_mut(), 0);
        pg_sys::get_func_signature(call.funcid, &raw mut types, &raw mut count);
        let types = [slice::from_raw_parts(types, count as usize), &[pg_sys::INTERNALOID]].concat();
        let twin = in_schema(INTERNAL_SCHEMA, &name, &types)?;
        let arguments = [elements(call.args), &[nodes::internal()]].concat();
        Some(nodes::call(twin, call.funcresulttype, &arguments, call.inputcollid))
    }
}
