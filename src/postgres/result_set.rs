//! A set of rows that a function returns as a whole. It is kept in memory up to `work_mem`, and beyond that in a file.
#![allow(unsafe_code, reason = "PostgreSQL's tuplestores")]

use pgrx::{PgTupleDesc, is_a, pg_sys};

use super::call::Call;

pub struct ResultSet {
    rows: *mut pg_sys::Tuplestorestate,
    /// Whether the columns still have the types that they had when the query was planned.
    pub is_as_planned: bool,
}

impl ResultSet {
    /// Begins the result of a function. Returns None if the function's caller does not accept a set.
    ///
    /// # Safety The running function must be declared to return a set of this composite type.
    pub unsafe fn begin(call: Call, row: pg_sys::Oid) -> Option<Self> {
        // SAFETY: as the caller promises. The set and its descriptor belong to the query; after an error, PostgreSQL resets the
        // context.
        unsafe {
            let result = (*call.raw()).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            let is_set = !result.is_null()
                && is_a(result.cast(), pg_sys::NodeTag::T_ReturnSetInfo)
                && (*result).allowedModes as u32 & pg_sys::SetFunctionReturnMode::SFRM_Materialize != 0;
            if !is_set {
                return None;
            }
            let memory = pg_sys::MemoryContextSwitchTo((*(*result).econtext).ecxt_per_query_memory);
            let is_random = (*result).allowedModes as u32 & pg_sys::SetFunctionReturnMode::SFRM_Materialize_Random != 0;
            let set = pg_sys::tuplestore_begin_heap(is_random, false, pg_sys::work_mem);
            (*result).returnMode = pg_sys::SetFunctionReturnMode::SFRM_Materialize;
            (*result).setResult = set;
            (*result).setDesc = pg_sys::lookup_rowtype_tupdesc_copy(row, -1);
            pg_sys::MemoryContextSwitchTo(memory);
            (*call.raw()).isnull = true;
            let types =
                |of| PgTupleDesc::from_pg_unchecked(of).iter().map(|column| column.atttypid).collect::<Vec<_>>();
            let planned = (*result).expectedDesc;
            let is_as_planned = planned.is_null() || types(planned) == types((*result).setDesc);
            Some(Self { rows: set, is_as_planned })
        }
    }

    /// Adds a copy of a row.
    ///
    /// # Safety
    /// The datum must be a row of the type.
    pub unsafe fn push(&mut self, row: pg_sys::Datum) {
        // SAFETY: as the caller promises. A row is a varlena, which begins with four bytes of length.
        unsafe {
            let row = pg_sys::pg_detoast_datum(row.cast_mut_ptr());
            let mut tuple = pg_sys::HeapTupleData {
                t_len: pgrx::varlena::varsize_any(row) as u32,
                t_data: row.cast(),
                ..Default::default()
            };
            pg_sys::tuplestore_puttuple(self.rows, &raw mut tuple);
        }
    }
}
