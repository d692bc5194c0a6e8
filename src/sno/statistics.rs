//! The statistics that ANALYZE collects about a column of snos: the usual ones, with a finer histogram.
//!
//! The problem: only for types of its own, PostgreSQL knows how far a value lies between the two ends of a histogram's bucket. For
//! snos, it estimates a range in whole buckets, and a range within one bucket as a single row. The remedy is more buckets from the
//! same sample. Estimators of our own would not help, because the planner recognizes the two bounds of a range by PostgreSQL's
//! estimators.
#![allow(unsafe_code, reason = "fills a struct of ANALYZE")]

use pgrx::pg_sys;

use crate::postgres::entry_point::entry_point;
use crate::postgres::guard::guarded;

/// How many buckets replace one of PostgreSQL's. With this number, an hour of the last 20 days is not estimated as a single row.
/// More would cost time, because each planning of a range reads all of them.
const FINENESS: i16 = 5;

entry_point!(sno_typanalyze(column: *mut pg_sys::Node), |_call| {
    // SAFETY: PostgreSQL gives an analyze function a VacAttrStats.
    unsafe { guarded(|| pg_sys::Datum::from(prepare(&mut *column.cast()))) }
});

/// Returns whether there is anything to compute.
///
/// # Safety
/// The column must be one that ANALYZE has begun to examine.
unsafe fn prepare(column: &mut pg_sys::VacAttrStats) -> bool {
    // SAFETY: as the caller promises. Before version 17, the statistics have a copy of the column's catalog row.
    unsafe {
        if !pg_sys::std_typanalyze(column) {
            return false;
        }
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let target = &mut (*column.attr).attstattarget;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        let target = &mut column.attstattarget;
        // PostgreSQL 16 stores it in 16 bits.
        *target = target.saturating_mul(FINENESS.into());
        true
    }
}
