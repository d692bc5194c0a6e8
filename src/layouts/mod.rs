//! A layout by its name: built in, or custom from the catalog.

pub mod argument;
pub mod catalog;
pub mod custom;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;

use flake_core::{LONGEST_NAME, Layout, built_in, unknown_layout};

use crate::error::{Error, OrRaise};
use crate::postgres::encoding::escape_non_ascii;

thread_local! {
    /// The layout of the last call and the catalog version it was found in: a query names the same layout in each row.
    static LAST_USED: Cell<Option<(&'static Layout, u64)>> = const { Cell::new(None) };
    /// The layouts found in this version of the catalog, by their names. It is never dropped: for a destructor, libc looks a symbol
    /// up in all libraries of the server, at 25 page faults for each session.
    static FOUND: RefCell<(u64, ManuallyDrop<BTreeMap<String, &'static Layout>>)> =
        const { RefCell::new((0, ManuallyDrop::new(BTreeMap::new()))) };
}

/// Returns the layout with this name, or raises an error. Names are ASCII, so their bytes are compared whatever the
/// encoding of the database.
#[inline]
pub fn by_name(name: &[u8]) -> &'static Layout {
    last_used(name).unwrap_or_else(|| look_up(name))
}

/// Returns the layout with this name, if there is one.
pub fn known(name: &[u8]) -> Option<&'static Layout> {
    last_used(name).or_else(|| find(name, custom::catalog_version()).ok())
}

/// Returns the layout with this name if the last call used it.
#[inline]
fn last_used(name: &[u8]) -> Option<&'static Layout> {
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
    // Read first, so that a change during the lookup makes the next call look again.
    let version = custom::catalog_version();
    let layout = find(name, version).or_raise();
    LAST_USED.set(Some((layout, version)));
    layout
}

fn find(name: &[u8], version: u64) -> Result<&'static Layout, Error> {
    let escaped = escape_non_ascii(name, LONGEST_NAME);
    if name.len() > LONGEST_NAME {
        return Err(unknown(&escaped));
    }
    let found = FOUND.with_borrow(|(of, found)| found.get(&escaped).copied().filter(|_| *of == version));
    if let Some(layout) = found {
        return Ok(layout);
    }
    // A layout that was made before this version of the library had a built-in one of its name keeps its meaning.
    let layout = match (custom::find(&escaped), built_in(&escaped)) {
        (Ok(Some(layout)), _) | (_, Some(layout)) => layout,
        (Err(error), None) => return Err(error),
        (Ok(None), None) => return Err(unknown(&escaped)),
    };
    FOUND.with_borrow_mut(|(of, found)| {
        if *of != version {
            found.clear();
            *of = version;
        }
        found.insert(escaped, layout);
    });
    Ok(layout)
}

/// Returns the error for a name that no layout has.
pub fn unknown(name: &str) -> Error {
    unknown_layout(name, &catalog::names()).into()
}
