//! A layout by its name: built in, or custom from the catalog.

pub mod argument;
pub mod catalog;
pub mod custom;

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use flake_core::{LONGEST_NAME, Layout, built_in, unknown_layout};

use crate::error::{Error, OrRaise};
use crate::postgres::encoding::escape_non_ascii;

/// How many layouts a session keeps at hand. A query that names a few of them finds each by one or two comparisons.
const MAX_CACHED: usize = 8;

thread_local! {
    /// The layouts found last in this version of the catalog. It is never dropped: to register a destructor, libc looks up a symbol
    /// in all libraries of the server, which costs each session 25 page faults.
    static FOUND: RefCell<(u64, ManuallyDrop<Vec<&'static Layout>>)> = const { RefCell::new((0, ManuallyDrop::new(Vec::new()))) };
}

/// Returns the layout with this name, or raises an error. Names are ASCII, so their bytes can be compared in every encoding.
pub fn by_name(name: &[u8]) -> &'static Layout {
    at_hand(name).unwrap_or_else(|| find(name).or_raise())
}

/// Returns the layout with this name, if there is one.
pub fn known(name: &[u8]) -> Option<&'static Layout> {
    at_hand(name).or_else(|| find(name).ok())
}

/// Returns the layout with this name if it was found lately and the catalog has not changed since.
fn at_hand(name: &[u8]) -> Option<&'static Layout> {
    FOUND.with_borrow(|(version, found)| {
        let found = found.iter().copied().find(|layout| is_same_name(layout.name().as_bytes(), name))?;
        (*version == custom::catalog_version()).then_some(found)
    })
}

/// Compares two names. Names of usual lengths take one or two comparisons of words.
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
fn find(name: &[u8]) -> Result<&'static Layout, Error> {
    // The version is read first, so that after a change during the lookup, the next call looks again.
    let now = custom::catalog_version();
    let escaped = escape_non_ascii(name, LONGEST_NAME);
    if name.len() > LONGEST_NAME {
        return Err(unknown(&escaped));
    }
    // A custom layout keeps its name if it was made before this version of the library had a built-in layout with that name.
    let layout = match custom::find(&escaped)? {
        Some(layout) => layout,
        None => built_in(&escaped).ok_or_else(|| unknown(&escaped))?,
    };
    FOUND.with_borrow_mut(|(version, found)| {
        if *version != now || found.len() == MAX_CACHED {
            found.clear();
            *version = now;
        }
        found.push(layout);
    });
    Ok(layout)
}

/// Returns the error for a name that no layout has.
pub fn unknown(name: &str) -> Error {
    unknown_layout(name, &catalog::names()).into()
}
