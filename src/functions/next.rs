//! flake_next: at best one comparison of the layout's name, one look at the clock, and one step of a generator.

use flake_core::Step;
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::layouts::{by_name, custom};
use crate::postgres::call::Text;
use crate::postgres::entry_point::entry_point;
use crate::session::generators::find;
use crate::session::layout_source::LayoutSource;
use crate::session::next_id;

entry_point!(flake_next(layout: Text<'_>) else flake_next_or_wait, |call| {
    layout.inline_bytes().and_then(|layout| at_once(layout, None))
});

entry_point!(flake_next_tagged(layout: Text<'_>, tag: i32) else flake_next_tagged_or_wait, |call| {
    layout.inline_bytes().and_then(|layout| at_once(layout, Some(tag)))
});

/// Returns the next ID, with a tag if there is one, if a generator is known by this name and has an ID now.
#[inline]
fn at_once(layout: &[u8], tag: Option<i32>) -> Option<u64> {
    let catalog_version = custom::catalog_version();
    find(
        |source: &LayoutSource| source.is_known_as(layout, catalog_version),
        |own| {
            let tag = tag.map_or(Ok(0), |tag| own.source.layout.tag_bits(tag.into())).ok()?;
            match own.at_once(()) {
                Step::Issue(id) => Some(id | tag),
                _ => None,
            }
        },
    )
}

#[pg_extern(sql = "")]
fn flake_next_or_wait(layout: &[u8]) -> i64 {
    next_id(LayoutSource::by_name(layout), ()).or_raise() as i64
}

#[pg_extern(sql = "")]
fn flake_next_tagged_or_wait(layout: &[u8], tag: i32) -> i64 {
    let tag = by_name(layout).tag_bits(tag.into()).or_raise();
    flake_next_or_wait(layout) | tag as i64
}
