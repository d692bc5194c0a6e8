//! The layout that a function's argument names, remembered from call to call.
#![allow(unsafe_code, reason = "memory of the call site")]

use flake_core::{Error, Layout};

use super::{by_name, custom, is_same_name};
use crate::error::OrRaise;
use crate::postgres::call::{Call, Text};
use crate::postgres::guard::guarded;

/// The cache of a call site: the layout of its last call, and the catalog version in which it was found.
#[derive(Clone, Copy)]
struct Cached {
    layout: &'static Layout,
    catalog_version: u64,
    /// Whether the call site always names this layout, so that names need not be compared.
    is_constant: bool,
}

/// Returns what `act` makes of the layout that argument `number` names. The call site remembers the layout. If it is not known yet, or if
/// `act` returns an error, `act` is called under the guard against errors, where its error is raised.
///
/// # Safety The function must cache nothing else at its call site, and `name` must be its argument `number`. As for [`guarded`].
#[inline]
pub unsafe fn with_layout<R>(
    call: Call,
    number: usize,
    name: Text<'_>,
    act: impl Fn(&'static Layout) -> Result<R, Error>,
) -> R {
    // SAFETY: as the caller promises; nothing is borrowed that an error could leave borrowed.
    unsafe {
        // An error that `act` returns here is dropped before one is raised.
        let result = remembered(call, name).and_then(|layout| act(layout).ok());
        result.unwrap_or_else(|| guarded(|| act(look_up(call, number, name)).or_raise()))
    }
}

/// Returns the layout that the call site remembers, if it has this name.
///
/// # Safety
/// As for [`with_layout`].
#[inline]
pub unsafe fn remembered(call: Call, name: Text<'_>) -> Option<&'static Layout> {
    // SAFETY: as the caller promises.
    let cached = unsafe { call.cached::<Cached>() }?;
    let is_same = cached.is_constant || is_same_name(cached.layout.name().as_bytes(), name.inline_bytes()?);
    (is_same && cached.catalog_version == custom::catalog_version()).then_some(cached.layout)
}

/// Looks up a layout, and lets the call site remember it. Raises an error if there is none.
///
/// # Safety
/// As for [`with_layout`].
pub unsafe fn look_up(call: Call, number: usize, name: Text<'_>) -> &'static Layout {
    let catalog_version = custom::catalog_version();
    let layout = by_name(name.bytes());
    // SAFETY: as the caller promises.
    unsafe { call.cache(Cached { layout, catalog_version, is_constant: call.is_constant(number) }) };
    layout
}
