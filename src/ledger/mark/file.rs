//! The file flake.mark in the data directory: the record of this server. pg_basebackup and pg_rewind copy it like any other file of
//! the data directory.

use std::fs::{File, OpenOptions, remove_file, rename};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;

use flake_core::ledger::durable::file::{FILE as SIZE, HALF};
use pgrx::PgSqlErrorCode::*;

use crate::error::Error;

// Server processes run in the data directory.
const FILE: &str = "flake.mark";
const NEW_FILE: &str = "flake.mark.new";
/// How many bytes are read at most.
const MAX_BYTES: usize = SIZE + 1;

/// Reads the file; None if it does not exist.
pub fn read() -> Result<Option<Vec<u8>>, Error> {
    let read = || {
        let mut bytes = Vec::with_capacity(MAX_BYTES);
        // Reading one byte more than the size detects a longer file, and stops at a device that never ends.
        File::open(FILE)?.take(MAX_BYTES as u64).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error("read", &error)),
    }
}

/// Writes to the beginning of one half, and flushes that. Returns false if the file does not exist.
pub fn write(half: usize, bytes: &[u8]) -> Result<bool, Error> {
    let write = |file: File| {
        file.write_all_at(bytes, (half * HALF) as u64)?;
        if is_fsync_on() { file.sync_data() } else { Ok(()) }
    };
    match OpenOptions::new().write(true).open(FILE).and_then(write) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(file_error("write", &error)),
    }
}

/// Writes a new file and renames it, so that the file is never half written.
pub fn replace(bytes: &[u8]) -> Result<(), Error> {
    let replace = || {
        let mut file = File::create(NEW_FILE)?;
        file.write_all(bytes)?;
        if is_fsync_on() {
            file.sync_all()?;
        }
        rename(NEW_FILE, FILE)?;
        if is_fsync_on() { File::open(".")?.sync_all() } else { Ok(()) }
    };
    replace().map_err(|error| {
        // A full disk may have left part of the new file.
        let _ = remove_file(NEW_FILE);
        file_error("write", &error)
    })
}

fn file_error(operation: &str, error: &io::Error) -> Error {
    // The standard library appends the error number, which PostgreSQL's messages do not have.
    let mut reason = error.to_string();
    reason.truncate(reason.find(" (os error").unwrap_or(reason.len()));
    let sqlstate = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ERRCODE_DISK_FULL,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => ERRCODE_INSUFFICIENT_PRIVILEGE,
        _ => ERRCODE_IO_ERROR,
    };
    Error::of(sqlstate, format!("could not {operation} file \"flake.mark\": {reason}"))
        .detail("flake makes IDs only while this file in the data directory can record the time that they use.")
        .hint("Check that the data directory is writable and its disk is not full.")
}

/// Returns PostgreSQL's setting fsync.
#[allow(unsafe_code, reason = "reads PostgreSQL's variable")]
fn is_fsync_on() -> bool {
    // SAFETY: it is a boolean that only this process changes.
    unsafe { pgrx::pg_sys::enableFsync }
}
