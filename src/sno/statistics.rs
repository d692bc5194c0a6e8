//! Statistics that ANALYZE collects about a column of snos: those of any column, with a finer histogram.
//!
//! PostgreSQL knows how far a value lies between the two ends of a histogram's bucket only for types of its own. A range of
//! snos is therefore estimated in whole buckets, and one that lies within a bucket as a single row. More buckets are the
//! remedy: the estimators have to stay PostgreSQL's own, as the planner recognizes the two bounds of a range by them. The
//! list of most common values stays as long as it is, as joins compare every two of two lists.
#![allow(unsafe_code, reason = "reads and fills structs of ANALYZE")]

use std::slice;

use flake_core::Sno;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::prelude::*;

use super::datum::read;
use crate::postgres::entry_point::entry_point;

/// How many buckets there are for one of PostgreSQL's. With these, an hour of the last 20 days is not taken for a single row. Each
/// planning of a range reads all of them.
const FINENESS: usize = 5;

/// PostgreSQL's own way of computing statistics.
#[derive(Clone, Copy)]
struct Standard {
    compute_stats: pg_sys::AnalyzeAttrComputeStatsFunc,
    extra_data: *mut std::ffi::c_void,
}

entry_point!(sno_typanalyze(column: *mut pg_sys::Node), |_call| {
    // SAFETY: PostgreSQL gives an analyze function a VacAttrStats.
    unsafe { pg_sys::panic::pgrx_extern_c_guard(|| pg_sys::Datum::from(prepare(&mut *column.cast()))) }
});

/// Has ANALYZE call [`compute_stats`]. Returns whether there is anything to compute.
///
/// # Safety
/// The column must be one that ANALYZE has begun to examine.
unsafe fn prepare(column: &mut pg_sys::VacAttrStats) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        if !pg_sys::std_typanalyze(column) {
            return false;
        }
        let standard = pg_sys::palloc(size_of::<Standard>()).cast::<Standard>();
        standard.write(Standard { compute_stats: column.compute_stats, extra_data: column.extra_data });
        column.compute_stats = Some(compute_stats);
        column.extra_data = standard.cast();
        true
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn compute_stats(
    column: pg_sys::VacAttrStatsP,
    fetch: pg_sys::AnalyzeAttrFetchFunc,
    sample_rows: i32,
    total_rows: f64,
) {
    // SAFETY: `prepare` has left what is in `extra_data`; PostgreSQL's function expects its own there, and gets the
    // arguments that were meant for it. Errors in both functions of PostgreSQL become panics here.
    unsafe {
        let column = &mut *column;
        let standard = *column.extra_data.cast::<Standard>();
        let (Some(compute), Some(fetch)) = (standard.compute_stats, fetch) else { return };
        column.extra_data = standard.extra_data;
        pg_guard_ffi_boundary(|| compute(column, Some(fetch), sample_rows, total_rows));
        let mut sample: Vec<Sno> = Vec::new();
        if sample.try_reserve_exact(sample_rows.max(0) as usize).is_ok() {
            pg_guard_ffi_boundary(|| {
                for row in 0..sample_rows {
                    let mut is_null = false;
                    let datum = fetch(column, row, &raw mut is_null);
                    if !is_null {
                        sample.push(read(datum));
                    }
                }
            });
            refine_histogram(column, sample);
        }
    }
}

/// Replaces the histogram, if there is one, by a finer one of the same sample.
///
/// # Safety
/// The standard statistics of the column must have been computed from the sample.
unsafe fn refine_histogram(column: &mut pg_sys::VacAttrStats, mut sample: Vec<Sno>) {
    let slot_of = |kind: u32| column.stakind.iter().position(|&found| found == kind as i16);
    let Some(histogram) = slot_of(pg_sys::STATISTIC_KIND_HISTOGRAM) else { return };
    // The histogram is of all values but the most common ones.
    if let Some(common) = slot_of(pg_sys::STATISTIC_KIND_MCV) {
        // SAFETY: the slot has that many values, which are snos.
        let mut common: Vec<Sno> = unsafe {
            let values = slice::from_raw_parts(column.stavalues[common], column.numvalues[common] as usize);
            values.iter().map(|&value| read(value)).collect()
        };
        common.sort_unstable();
        sample.retain(|sno| common.binary_search(sno).is_err());
    }
    sample.sort_unstable();
    let different = sample.chunk_by(|one, other| one == other).count();
    let ends = different.min((column.numvalues[histogram] as usize - 1) * FINENESS + 1);
    if ends < 2 {
        return;
    }
    // SAFETY: statistics live in `anl_context` until they are stored; the memory is as large as what is written there.
    unsafe {
        let snos = pg_sys::MemoryContextAlloc(column.anl_context, ends * size_of::<Sno>()).cast::<Sno>();
        let values = pg_sys::MemoryContextAlloc(column.anl_context, ends * size_of::<pg_sys::Datum>());
        let values = values.cast::<pg_sys::Datum>();
        for end in 0..ends {
            let sno = snos.add(end);
            sno.write(sample[end * (sample.len() - 1) / (ends - 1)]);
            values.add(end).write(pg_sys::Datum::from(sno));
        }
        column.stavalues[histogram] = values;
        column.numvalues[histogram] = ends as i32;
    }
}
