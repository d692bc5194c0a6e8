//! Standbys: what they may do, and how far the primary got before one is promoted.
#![allow(unsafe_code, reason = "asks PostgreSQL about recovery")]

use std::ffi::CStr;

use pgrx::prelude::*;

use super::settings;
use super::timestamptz::Timestamptz;

/// Returns whether this server is a standby, or in recovery for another reason.
pub fn is_in_progress() -> bool {
    // SAFETY: it reads shared memory.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Raises the error that nextval() raises during recovery, unless `flake.allow_in_recovery` is on: a standby could make the
/// primary's IDs again. `function` is the SQL function that the error names.
pub fn refuse(function: &CStr) {
    if !settings::allow_in_recovery() {
        // SAFETY: it takes a C string, and raises an error or does nothing.
        unsafe { pg_sys::PreventCommandDuringRecovery(function.as_ptr()) }
    }
}

/// Returns the latest instant of the replayed commits and prepared transactions; none if nothing was replayed. Another
/// server can have made this server's IDs until then.
pub fn replayed_until() -> Option<i64> {
    // SAFETY: it reads shared memory.
    let committed = unsafe { pg_sys::GetLatestXTime() };
    if committed == 0 {
        return None;
    }
    let query = "SELECT pg_catalog.max(prepared) FROM pg_catalog.pg_prepared_xacts";
    let prepared =
        Spi::connect(|client| client.select(query, Some(1), &[])?.first().get_one::<TimestampWithTimeZone>());
    let committed = Timestamptz::from_raw(committed);
    let latest = prepared.ok().flatten().map_or(committed, |prepared| committed.max(prepared.into()));
    Some(latest.instant())
}
