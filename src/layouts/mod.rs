//! A layout by its name: built in, or custom from the catalog.

pub mod argument;
pub mod custom;

use std::cell::Cell;

use flake_core::{Layout, built_in};

use crate::error::OrRaise;
use crate::postgres::encoding::escape_non_ascii;

thread_local! {
    /// The layout of the last call and the catalog version it was found in: a query names the same layout in each row.
    static LAST_USED: Cell<Option<(&'static Layout, u64)>> = const { Cell::new(None) };
}

/// Returns the layout with this name, or raises an error. Names are ASCII, so their bytes are compared whatever the
/// encoding of the database.
#[inline]
pub fn by_name(name: &[u8]) -> &'static Layout {
    last_used(name).unwrap_or_else(|| look_up(name))
}

/// Returns the layout with this name if the last call used it.
#[inline]
pub fn last_used(name: &[u8]) -> Option<&'static Layout> {
    let (layout, version) = LAST_USED.get()?;
    (is_same_name(layout.name().as_bytes(), name) && version == custom::catalog_version()).then_some(layout)
}

/// Compares two names, those of usual lengths by one or two comparisons of words.
#[inline]
pub fn is_same_name(one: &[u8], other: &[u8]) -> bool {
    fn ends<const N: usize>(name: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
        Some((name.first_chunk()?, name.last_chunk()?))
    }
    one.len() == other.len()
        && match one.len() {
            4..=8 => ends::<4>(one) == ends(other),
            9..=16 => ends::<8>(one) == ends(other),
            _ => one == other,
        }
}

#[cold]
fn look_up(name: &[u8]) -> &'static Layout {
    let name = escape_non_ascii(name);
    // Read first, so that a change during the lookup makes the next call look again.
    let version = custom::catalog_version();
    let layout = built_in(&name).unwrap_or_else(|| custom::find(&name).or_raise());
    LAST_USED.set(Some((layout, version)));
    layout
}
