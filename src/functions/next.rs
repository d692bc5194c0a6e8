//! flake_next: in the usual case it compares the layout's name, looks at the clock, and makes the next ID of a block.

use flake_core::Layout;
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::layouts::by_name;
use crate::postgres::call::Text;
use crate::postgres::copy_twin;
use crate::postgres::entry_point::entry_point;
use crate::postgres::random::random;
use crate::session::layout_source::LayoutSource;
use crate::session::next_id;
use crate::session::stores::{LAYOUTS, find};

entry_point!(flake_next(layout: Text<'_>) else flake_next_or_wait, |call| {
    layout.inline_bytes().and_then(|layout| at_once(layout, |_| Some(0)))
});

entry_point!(flake_next_tagged(layout: Text<'_>, tag: i32) else flake_next_tagged_or_wait, |call| {
    layout.inline_bytes().and_then(|layout| at_once(layout, |layout| layout.tag_bits(tag.into()).ok()))
});

entry_point!(flake_next_support(request: *mut pg_sys::Node), |call| {
    #[allow(unsafe_code, reason = "answers the planner")]
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

#[pg_extern(sql = "")]
fn flake_next_or_wait(layout: &[u8]) -> i64 {
    next_id(&LAYOUTS, LayoutSource::by_name(layout), random).or_raise() as i64
}

#[pg_extern(sql = "")]
fn flake_next_tagged_or_wait(layout: &[u8], tag: i32) -> i64 {
    let tag = by_name(layout).tag_bits(tag.into()).or_raise();
    flake_next_or_wait(layout) | tag as i64
}
