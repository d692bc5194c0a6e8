//! flake_next: in the usual case it compares the layout's name, looks at the clock, and makes the next ID of a block.
#![allow(unsafe_code, reason = "enters the guard, and answers the planner")]

use flake_core::Layout;
use pgrx::pg_sys;

use crate::error::OrRaise;
use crate::layouts::by_name;
use crate::postgres::call::Text;
use crate::postgres::copy_twin;
use crate::postgres::entry_point::entry_point;
use crate::postgres::guard::guarded;
use crate::postgres::random::random;
use crate::session::layout_source::LayoutSource;
use crate::session::next_id;
use crate::session::stores::{LAYOUTS, find};

entry_point!(flake_next(layout: Text<'_>), |call| {
    let id = layout.inline_bytes().and_then(|layout| at_once(layout, |_| Some(0)));
    // SAFETY: nothing is borrowed that an error could leave borrowed.
    pg_sys::Datum::from(id.unwrap_or_else(|| unsafe { guarded(|| next_or_wait(layout.bytes())) }))
});

entry_point!(flake_next_tagged(layout: Text<'_>, tag: i32), |call| {
    let id = layout.inline_bytes().and_then(|layout| at_once(layout, |layout| layout.tag_bits(tag.into()).ok()));
    let next_or_wait = || {
        let tag = by_name(layout.bytes()).tag_bits(tag.into()).or_raise();
        next_or_wait(layout.bytes()) | tag
    };
    // SAFETY: nothing is borrowed that an error could leave borrowed.
    pg_sys::Datum::from(id.unwrap_or_else(|| unsafe { guarded(next_or_wait) }))
});

entry_point!(flake_next_support(request: *mut pg_sys::Node), |call| {
    // SAFETY: the request is for flake_next or sno_next; flake_next_in_copy and sno_next_in_copy have their symbols.
    unsafe {
        copy_twin::answer(request)
    }
});

/// Returns the next ID with a tag, if there is a generator with this name that can make one now.
#[inline]
fn at_once(layout: &[u8], tag_bits: impl FnOnce(&Layout) -> Option<u64>) -> Option<u64> {
    find(
        &LAYOUTS,
        move |source| source.is_known_as(layout),
        move |own| {
            let tag = tag_bits(own.source())?;
            Some(own.at_once(random)? | tag)
        },
    )
}

fn next_or_wait(layout: &[u8]) -> u64 {
    next_id(&LAYOUTS, LayoutSource::by_name(layout), random).or_raise()
}
