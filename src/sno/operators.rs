//! Comparing, sorting and hashing snos.

use flake_core::Sno;
use pgrx::prelude::*;
use twox_hash::XxHash3_64;

use super::datum::SnoDatum;
use crate::postgres::entry_point::c_symbol;

macro_rules! comparison {
    ($name:ident, $operator:tt) => {
        #[pg_extern(sql = "")]
        fn $name(left: SnoDatum, right: SnoDatum) -> bool {
            left.0 $operator right.0
        }

        c_symbol!($name);
    };
}

comparison!(sno_lt, <);
comparison!(sno_le, <=);
comparison!(sno_eq, ==);
comparison!(sno_ne, !=);
comparison!(sno_ge, >=);
comparison!(sno_gt, >);

#[pg_extern(sql = "")]
fn sno_cmp(left: SnoDatum, right: SnoDatum) -> i32 {
    left.0.cmp(&right.0) as i32
}

#[pg_extern(sql = "")]
fn sno_smaller(left: SnoDatum, right: SnoDatum) -> SnoDatum {
    if left.0 <= right.0 { left } else { right }
}

#[pg_extern(sql = "")]
fn sno_larger(left: SnoDatum, right: SnoDatum) -> SnoDatum {
    if left.0 >= right.0 { left } else { right }
}

// The hash is stored on disk: in hash indexes, and in the choice of hash partitions. So it must never change. It is the 64-bit XXH3
// of the ten bytes. With seed 0, the lower half of the extended hash must equal the plain hash.
#[pg_extern(sql = "")]
fn sno_hash(sno: SnoDatum) -> i32 {
    XxHash3_64::oneshot_with_seed(0, sno.0.bytes()) as i32
}

#[pg_extern(sql = "")]
fn sno_hash_extended(sno: SnoDatum, seed: i64) -> i64 {
    XxHash3_64::oneshot_with_seed(seed as u64, sno.0.bytes()) as i64
}

/// Makes PostgreSQL sort by the first eight bytes as a number, which are time, metabyte and partition. It compares whole snos only
/// if these are equal.
#[pg_extern(sql = "")]
#[allow(unsafe_code, reason = "fills a struct of PostgreSQL's sort")]
fn sno_sortsupport(mut support: pgrx::Internal) {
    // SAFETY: PostgreSQL gives a sort support function a SortSupportData.
    let Some(support) = (unsafe { support.get_mut::<pg_sys::SortSupportData>() }) else { return };
    if support.abbreviate {
        support.comparator = Some(ssup_datum_unsigned_cmp);
        support.abbrev_converter = Some(abbreviate);
        support.abbrev_abort = Some(never_abort);
        support.abbrev_full_comparator = Some(compare);
    } else {
        support.comparator = Some(compare);
    }
}

#[allow(unsafe_code, reason = "PostgreSQL's sort calls it with the datums of snos")]
unsafe extern "C-unwind" fn compare(left: pg_sys::Datum, right: pg_sys::Datum, _: pg_sys::SortSupport) -> i32 {
    // SAFETY: both point to ten bytes.
    let (left, right) = unsafe { (&*left.cast_mut_ptr::<Sno>(), &*right.cast_mut_ptr::<Sno>()) };
    left.cmp(right) as i32
}

#[allow(unsafe_code, reason = "a function of PostgreSQL's sort")]
unsafe extern "C-unwind" {
    /// PostgreSQL has a sort of its own for keys that this function compares. pgrx's declaration has another address.
    fn ssup_datum_unsigned_cmp(left: pg_sys::Datum, right: pg_sys::Datum, support: pg_sys::SortSupport) -> i32;
}

#[allow(unsafe_code, reason = "PostgreSQL's sort calls it with the datum of a sno")]
unsafe extern "C-unwind" fn abbreviate(sno: pg_sys::Datum, _: pg_sys::SortSupport) -> pg_sys::Datum {
    // SAFETY: it points to ten bytes.
    let [a, b, c, d, e, f, g, h, _, _] = unsafe { *sno.cast_mut_ptr::<[u8; 10]>() };
    pg_sys::Datum::from(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

/// Abbreviated keys cost almost nothing, so the sort never gives them up. `trace_sort` shows that they are used.
#[allow(unsafe_code, reason = "PostgreSQL's sort calls it")]
#[pg_guard]
unsafe extern "C-unwind" fn never_abort(count: i32, _support: pg_sys::SortSupport) -> bool {
    // SAFETY: it is a setting of this process.
    if unsafe { pg_sys::trace_sort } {
        pgrx::log!("sno_abbrev: abbreviated keys after {count} snos");
    }
    false
}

c_symbol!(sno_cmp, sno_smaller, sno_larger, sno_hash, sno_hash_extended, sno_sortsupport);
