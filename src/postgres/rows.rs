//! Composite results.
#![allow(unsafe_code, reason = "pgrx makes rows by the names of their columns, which takes most of a call's time")]

use std::ptr;

use pgrx::pg_sys;

use super::call::Call;

/// Returns a row of the type that the called function is declared to return, or None if its columns do not have these types because
/// a superuser has altered it.
///
/// # Safety The columns must have these types, and the function must use its call site's cache for nothing else.
pub unsafe fn row<const N: usize>(
    call: Call,
    types: [pg_sys::Oid; N],
    columns: [Option<pg_sys::Datum>; N],
) -> Option<pg_sys::Datum> {
    // SAFETY: as the caller promises.
    unsafe {
        let call_site = (*call.raw()).flinfo;
        if (*call_site).fn_extra.is_null() {
            (*call_site).fn_extra = row_type(call, &types)?.cast();
        }
        let mut nulls = columns.map(|column| column.is_none());
        let mut values = columns.map(|column| column.unwrap_or(pg_sys::Datum::null()));
        let row = pg_sys::heap_form_tuple((*call_site).fn_extra.cast(), values.as_mut_ptr(), nulls.as_mut_ptr());
        Some(pg_sys::HeapTupleHeaderGetDatum((*row).t_data))
    }
}

/// Returns the result's descriptor, which lives as long as the call site, or None if its columns do not have these types.
unsafe fn row_type(call: Call, types: &[pg_sys::Oid]) -> Option<pg_sys::TupleDesc> {
    // SAFETY: as the caller of `row` promises. After an error, PostgreSQL resets the memory context itself.
    unsafe {
        let memory = pg_sys::MemoryContextSwitchTo((*(*call.raw()).flinfo).fn_mcxt);
        let mut descriptor = ptr::null_mut();
        let class = pg_sys::get_call_result_type(call.raw(), ptr::null_mut(), &raw mut descriptor);
        assert_eq!(class, pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE, "SQL declares another result");
        let descriptor = pg_sys::BlessTupleDesc(descriptor);
        pg_sys::MemoryContextSwitchTo(memory);
        // Dropped columns have type 0.
        let columns = pgrx::PgTupleDesc::from_pg_unchecked(descriptor);
        columns.iter().map(|column| column.atttypid).eq(types.iter().copied()).then_some(descriptor)
    }
}
