//! The layout that a function's argument names, remembered from call to call.
#![allow(unsafe_code, reason = "memory of the call site")]

use flake_core::Layout;

use super::{by_name, custom, is_same_name};
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

/// Calls `act` with the layout that argument `number` names. If `act` returns None, or if the layout is not known yet, looks it up
/// for the next call from this call site.
///
/// # Safety The function must cache nothing else at its call site, and `name` must be its argument `number`.
#[inline]
pub unsafe fn with_layout<R>(
    call: Call,
    number: usize,
    name: Text<'_>,
    act: impl FnOnce(&'static Layout) -> Option<R>,
) -> Option<R> {
    // SAFETY: as the caller promises.
    let result = unsafe { call.cached::<Cached>() }.and_then(|cached| known(cached, name)).and_then(act);
    if result.is_none() {
        // SAFETY: as the caller promises.
        unsafe { look_up(call, number, name) };
    }
    result
}

#[inline]
fn known(cached: Cached, name: Text<'_>) -> Option<&'static Layout> {
    let is_same = cached.is_constant || is_same_name(cached.layout.name().as_bytes(), name.inline_bytes()?);
    (is_same && cached.catalog_version == custom::catalog_version()).then_some(cached.layout)
}

/// # Safety
/// As for [`with_layout`].
#[cold]
#[inline(never)]
unsafe fn look_up(call: Call, number: usize, name: Text<'_>) {
    // SAFETY: as the caller promises; nothing is borrowed that an error could leave borrowed.
    unsafe {
        guarded(|| {
            let catalog_version = custom::catalog_version();
            let layout = by_name(name.bytes());
            call.cache(Cached { layout, catalog_version, is_constant: call.is_constant(number) });
        });
    }
}
