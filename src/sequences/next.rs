//! nextval: an ID for an adopted sequence, and the next number of any other one.
//!
//! PostgreSQL's lastval() is kept right. That takes longer than to make an ID, and whoever loads many rows asks for the last key of none.
//! So a statement that loads many does it for the first ones only, if nothing in it can read lastval() or use another sequence.
#![allow(unsafe_code, reason = "memory of the call site, and an entry point")]

use pgrx::pg_sys::{self, Oid};

use super::memory::{self, Check};
use super::{access, native_last};
use crate::error::OrRaise;
use crate::postgres::bulk::is_in_bulk;
use crate::postgres::call::Call;
use crate::postgres::entry_point::entry_point;
use crate::postgres::guard::guarded;
use crate::postgres::random::random;
use crate::postgres::sequence;
use crate::session::layout_source::LayoutSource;
use crate::session::next_id;
use crate::session::stores::{LAYOUTS, find};

/// For how many IDs of every statement lastval() is kept right.
const SHOWN: u8 = 64;

/// The memory of a call site.
#[derive(Clone, Copy, PartialEq)]
enum Site {
    /// It has made so many IDs.
    Shown(u8),
    /// It has made many, and belongs to a statement that loads many rows.
    Bulk,
    /// It has made many, and lastval() may be read after each of them.
    Other,
}

entry_point!(flake_nextval(sequence: Oid), |call| {
    // SAFETY: this function caches nothing else. In the guard, nothing is borrowed that an error could leave borrowed.
    let id = unsafe { of_bulk(call, sequence).unwrap_or_else(|| guarded(|| next(call, sequence))) };
    pg_sys::Datum::from(id)
});

/// Returns an ID if the statement has made many, and nothing has to be checked.
///
/// # Safety
/// The function must cache nothing but a [`Site`].
#[inline]
unsafe fn of_bulk(call: Call, sequence: Oid) -> Option<i64> {
    // SAFETY: as the caller promises.
    unsafe { call.cached::<Site>() }.filter(|site| *site == Site::Bulk)?;
    let known = memory::known(sequence).filter(|known| known.check == Check::now())?;
    let id = at_once(known.layout)?;
    memory::keep(sequence, id, None);
    Some(id)
}

#[inline]
fn at_once(layout: &'static str) -> Option<i64> {
    let id = find(&LAYOUTS, |source| source.is_known_as(layout.as_bytes()), |own| own.at_once(random));
    id.map(|id| id as i64)
}

/// Returns the next number of a sequence.
///
/// # Safety
/// As for [`of_bulk`].
unsafe fn next(call: Call, sequence: Oid) -> i64 {
    let known = memory::known(sequence).filter(|known| known.check == Check::now());
    let Some(layout) = known.map(|known| known.layout).or_else(|| access::to_make_ids(sequence)) else {
        // SAFETY: nothing is held that must be dropped.
        return unsafe { sequence::native_next(sequence, true) };
    };
    let id = at_once(layout)
        .unwrap_or_else(|| next_id(&LAYOUTS, LayoutSource::by_name(layout.as_bytes()), random).or_raise() as i64);
    // SAFETY: as the caller promises.
    let is_shown = unsafe { is_shown(call) };
    if is_shown {
        native_last::show(id);
    }
    memory::keep(sequence, id, is_shown.then_some(id));
    id
}

/// Counts a call. Returns whether lastval() has to return its ID.
///
/// # Safety
/// As for [`of_bulk`].
unsafe fn is_shown(call: Call) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        let site = match call.cached().unwrap_or(Site::Shown(0)) {
            Site::Shown(SHOWN) if is_in_bulk(call, memory::is_checked) => Site::Bulk,
            Site::Shown(SHOWN) => Site::Other,
            Site::Shown(calls) => Site::Shown(calls + 1),
            decided => return decided != Site::Bulk,
        };
        call.cache(site);
        site != Site::Bulk
    }
}
