//! Statistics that ANALYZE collects about a column of snos: the usual ones, with a finer histogram.
//!
//! PostgreSQL knows how far a value lies between the two ends of a histogram's bucket only for types of its own. A range of
//! snos is therefore estimated in whole buckets, and one that lies within a bucket as a single row. More buckets of the same
//! sample are the remedy: the estimators have to stay PostgreSQL's own, because the planner recognizes the two bounds of a
//! range by them.
#![allow(unsafe_code, reason = "fills a struct of ANALYZE")]

use pgrx::pg_sys;

use crate::postgres::entry_point::entry_point;

/// How many buckets there are for one of PostgreSQL's. With these, an hour of the last 20 days is not taken for a single row.
/// Each planning of a range reads all of them.
const FINENESS: i16 = 5;

entry_point!(sno_typanalyze(column: *mut pg_sys::Node), |_call| {
    // SAFETY: PostgreSQL gives an analyze function a VacAttrStats.
    unsafe { pg_sys::panic::pgrx_extern_c_guard(|| pg_sys::Datum::from(prepare(&mut *column.cast()))) }
});

/// Returns whether there is anything to compute.
///
/// # Safety
/// The column must be one that ANALYZE has begun to examine.
unsafe fn prepare(column: &mut pg_sys::VacAttrStats) -> bool {
    // SAFETY: as the caller promises; before version 17 the statistics have a copy of the column's row of the catalog.
    unsafe {
        if !pg_sys::std_typanalyze(column) {
            return false;
        }
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let target = &mut (*column.attr).attstattarget;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        let target = &mut column.attstattarget;
        // PostgreSQL 16 has 16 bits for it.
        *target = target.saturating_mul(FINENESS.into());
        true
    }
}
