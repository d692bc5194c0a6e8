//! An ID as a row of its parts.

use pgrx::heap_tuple::PgHeapTuple;
use pgrx::prelude::*;
use pgrx::{AllocatedByRust, JsonB, PgTupleDesc};
use serde_json::{Map, Value};

use crate::error::OrRaise;
use crate::layouts::{by_name, sql_instant};

#[pg_extern(sql = "")]
fn flake_decode(
    id: i64,
    layout: &[u8],
    call: pg_sys::FunctionCallInfo,
) -> pgrx::composite_type!('static, "flake_parts") {
    let layout = by_name(layout);
    let id = id as u64;
    let parts = layout.unpack(id).or_raise();
    let fields: Map<String, Value> =
        layout.numbers(id).into_iter().map(|(name, number)| (name.to_owned(), number.into())).collect();
    row(
        call,
        [
            layout.name().into_datum(),
            sql_instant(layout.start_of(parts.tick)).into_datum(),
            (parts.worker as i64).into_datum(),
            (parts.sequence as i64).into_datum(),
            JsonB(Value::Object(fields)).into_datum(),
        ],
    )
}

/// A row of the type that the called function is declared to return, wherever the extension's schema is.
#[allow(unsafe_code, reason = "pgrx finds composite types by name only")]
pub fn row<const N: usize>(
    call: pg_sys::FunctionCallInfo,
    columns: [Option<pg_sys::Datum>; N],
) -> PgHeapTuple<'static, AllocatedByRust> {
    let mut descriptor = std::ptr::null_mut();
    // SAFETY: `call` is that of the running function. For a composite result PostgreSQL returns a copy of its
    // descriptor; the columns are of the types that sql/flake.sql declares.
    let row = unsafe {
        let class = pg_sys::get_call_result_type(call, std::ptr::null_mut(), &mut descriptor);
        assert_eq!(class, pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE, "declared otherwise in SQL");
        PgHeapTuple::from_datums(PgTupleDesc::from_pg_is_copy(descriptor), columns)
    };
    row.unwrap_or_else(|error| pgrx::error!("{error}"))
}
