//! Whether a server is a standby, which calls it must refuse then, and the timeline of its WAL.
#![allow(unsafe_code, reason = "asks PostgreSQL about recovery")]

use std::ffi::CStr;

use pgrx::pg_sys;

use super::encoding::to_utf8_lossy;

/// Returns whether this server is a standby, or in recovery for another reason.
pub fn is_in_progress() -> bool {
    // SAFETY: it reads shared memory.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Raises the error that nextval() raises during recovery. `function` is the SQL function that the error names.
pub fn refuse(function: &CStr) {
    // SAFETY: it takes a C string, and raises an error or does nothing.
    unsafe { pg_sys::PreventCommandDuringRecovery(function.as_ptr()) }
}

/// Returns the timeline on which this server writes WAL; 0 during recovery. Each promotion, and each recovery to a point in time,
/// begins a new timeline.
pub fn wal_timeline() -> u32 {
    // SAFETY: it reads shared memory, and may be called once recovery has ended.
    if is_in_progress() { 0 } else { unsafe { pg_sys::GetWALInsertionTimeLine() } }
}

/// Returns the content of a timeline's history file, which lists the timelines before it, or None if the file is missing. PostgreSQL's
/// own function ends the session on a file that it cannot read, and takes a missing one for a timeline without parents.
pub fn timeline_history(timeline: u32) -> Option<Vec<u8>> {
    // The working directory is the data directory.
    std::fs::read(format!("pg_wal/{timeline:08X}.history")).ok()
}

/// Returns the OID of this session's database.
pub fn database() -> u32 {
    // SAFETY: PostgreSQL sets it before a backend runs its first statement.
    unsafe { pg_sys::MyDatabaseId }.to_u32()
}

/// Returns the name of a database; empty if it has been dropped.
pub fn name_of_database(database: u32) -> String {
    // SAFETY: it returns a palloc'd C string or null.
    let name = unsafe { pg_sys::get_database_name(database.into()).as_ref().map(|name| CStr::from_ptr(name)) };
    name.map(|name| to_utf8_lossy(name.to_bytes()).into_owned()).unwrap_or_default()
}

/// Raises the error of a writing command in a read-only transaction. On a standby, every transaction is read-only.
pub fn forbid_if_read_only(command: &CStr) {
    // SAFETY: it reads variables of this process.
    unsafe { pg_sys::PreventCommandIfReadOnly(command.as_ptr()) }
}
