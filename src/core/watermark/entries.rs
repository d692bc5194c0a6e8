//! The entries of prepared transactions in the memory of a server.

use std::sync::atomic::Ordering;

use super::host::WatermarkHost;
use super::prepared::{self, Prepared};

/// Calls `act` with the entries of prepared transactions that may be in use, if there are any.
pub fn with_prepared<H: WatermarkHost, R>(host: &H, act: impl FnOnce(&[Prepared]) -> R) -> Option<R> {
    let entries = &host.prepared_use().entries;
    if entries.load(Ordering::SeqCst) == 0 {
        return None;
    }
    Some(host.prepared(|all| act(&all[..entries.load(Ordering::SeqCst) as usize])))
}

/// Adds prepared transactions to the entries.
pub(super) fn add_prepared<H: WatermarkHost>(host: &H, new: &[Prepared]) {
    host.prepared(|all| {
        for &one in new {
            let at = prepared::add(all, one, &host.known()) as u32;
            host.prepared_use().entries.fetch_max(at + 1, Ordering::SeqCst);
        }
    });
}
