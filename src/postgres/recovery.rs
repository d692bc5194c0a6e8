//! Standbys: what they may do, and how far the primary has got when one of them takes over.
#![allow(unsafe_code, reason = "asks PostgreSQL about recovery")]

use std::ffi::CStr;

use pgrx::prelude::*;

use crate::clock;
use crate::postgres::settings;

/// Whether this server is a standby, or recovering for another reason.
pub fn is_in_progress() -> bool {
    // SAFETY: reads shared memory.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// IDs made on a standby could be the primary's: refused in the words that nextval() uses, unless it has been allowed.
pub fn refuse_or_raise(function: &CStr) {
    if !settings::allow_in_recovery() {
        // SAFETY: takes a C string and raises an error or does nothing.
        unsafe { pg_sys::PreventCommandDuringRecovery(function.as_ptr()) }
    }
}

/// The latest instant at which another server can have made an ID that came here by replication: that of the last commit
/// or PREPARE TRANSACTION that was replayed. None when nothing was.
pub fn replayed_until() -> Option<i64> {
    // SAFETY: reads shared memory.
    let committed = unsafe { pg_sys::GetLatestXTime() };
    if committed == 0 {
        return None;
    }
    let query = "SELECT pg_catalog.max(prepared) FROM pg_catalog.pg_prepared_xacts";
    let prepared =
        Spi::connect(|client| client.select(query, Some(1), &[])?.first().get_one::<TimestampWithTimeZone>());
    let prepared = prepared.ok().flatten().map_or(i64::MIN, TimestampWithTimeZone::into_inner);
    Some(clock::instant(prepared.max(committed)))
}
