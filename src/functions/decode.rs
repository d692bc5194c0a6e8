//! An ID as a row of its parts.
#![allow(unsafe_code, reason = "pgrx makes rows and jsonb through names and text, which took most of the time")]

use std::ptr;

use flake_core::Layout;
use pgrx::prelude::*;

use crate::postgres::call::entry_point;
use crate::error::OrRaise;
use crate::layouts::{by_name, sql_instant};

entry_point!(pg_finfo_flake_decode, flake_decode, |call| {
    // SAFETY: the call is PostgreSQL's, of a STRICT function, and whatever can raise an error is guarded.
    unsafe { pg_sys::panic::pgrx_extern_c_guard(|| decode(call.raw(), call.bigint(0), call.whole_text(1))) }
});

/// # Safety
/// The call must be that of the running function.
unsafe fn decode(call: pg_sys::FunctionCallInfo, id: i64, layout: &[u8]) -> pg_sys::Datum {
    let layout = by_name(layout);
    let id = id as u64;
    let parts = layout.unpack(id).or_raise();
    let columns = [
        layout.name().into_datum(),
        sql_instant(layout.start_of(parts.tick)).into_datum(),
        (parts.worker as i64).into_datum(),
        (parts.sequence as i64).into_datum(),
        Some(fields(layout, id)),
    ];
    // SAFETY: as the caller; the columns are of the types that sql/flake.sql declares.
    unsafe { row(call, columns) }
}

/// Every named field with its number, as jsonb.
fn fields(layout: &Layout, id: u64) -> pg_sys::Datum {
    let mut numbers = layout.numbers(id);
    // The order of keys in jsonb, which PostgreSQL expects of a finished object: by length, then by bytes.
    numbers.sort_unstable_by_key(|(name, _)| (name.len(), *name));
    let pair = |(name, number): (&str, u64)| {
        let mut pair = pg_sys::JsonbPair::default();
        pair.key.type_ = pg_sys::jbvType::jbvString;
        pair.key.val.string.len = name.len() as i32;
        pair.key.val.string.val = name.as_ptr().cast_mut().cast();
        pair.value.type_ = pg_sys::jbvType::jbvNumeric;
        pair.value.val.numeric = numeric(number);
        pair
    };
    let mut pairs: Vec<_> = numbers.into_iter().map(pair).collect();
    let mut object = pg_sys::JsonbValue { type_: pg_sys::jbvType::jbvObject, ..Default::default() };
    object.val.object.nPairs = pairs.len() as i32;
    object.val.object.pairs = pairs.as_mut_ptr();
    // SAFETY: an object of pairs in order, which is copied, names and numbers included.
    unsafe { pg_sys::Datum::from(pg_sys::JsonbValueToJsonb(&raw mut object)) }
}

fn numeric(number: u64) -> pg_sys::Numeric {
    match i64::try_from(number) {
        // SAFETY: returns a palloc'd numeric.
        Ok(number) => unsafe { pg_sys::int64_to_numeric(number) },
        Err(_) => {
            let numeric = AnyNumeric::from(number).into_datum();
            numeric.map_or(ptr::null_mut(), |numeric| numeric.cast_mut_ptr())
        }
    }
}

/// A row of the type that the called function is declared to return, wherever the extension's schema is.
///
/// # Safety
/// The call must be that of the running function, which keeps nothing else with its place in the query, and the columns of
/// the types of the row's.
pub unsafe fn row<const N: usize>(
    call: pg_sys::FunctionCallInfo,
    columns: [Option<pg_sys::Datum>; N],
) -> pg_sys::Datum {
    // SAFETY: as the caller.
    unsafe {
        let place = (*call).flinfo;
        if (*place).fn_extra.is_null() {
            (*place).fn_extra = row_type(call).cast();
        }
        let mut nulls = columns.map(|column| column.is_none());
        let mut values = columns.map(|column| column.unwrap_or(pg_sys::Datum::null()));
        let row = pg_sys::heap_form_tuple((*place).fn_extra.cast(), values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::HeapTupleHeaderGetDatum((*row).t_data)
    }
}

/// The descriptor of the result, for as long as the place of the query lives.
unsafe fn row_type(call: pg_sys::FunctionCallInfo) -> pg_sys::TupleDesc {
    // SAFETY: as `row`; the memory context is set back unless there is an error, after which PostgreSQL does it.
    unsafe {
        let memory = pg_sys::MemoryContextSwitchTo((*(*call).flinfo).fn_mcxt);
        let mut descriptor = ptr::null_mut();
        let class = pg_sys::get_call_result_type(call, ptr::null_mut(), &raw mut descriptor);
        assert_eq!(class, pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE, "declared otherwise in SQL");
        let descriptor = pg_sys::BlessTupleDesc(descriptor);
        pg_sys::MemoryContextSwitchTo(memory);
        descriptor
    }
}
