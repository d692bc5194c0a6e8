//! The file in the data directory that keeps the marks of this server.
//!
//! pg_basebackup and pg_rewind copy it like any other file of the data directory.

use std::fs::{File, OpenOptions, remove_file, rename};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;

use flake_core::ledger::host::{Durability, HALF};

use crate::error::Error;

// Server processes run in the data directory.
const FILE: &str = "flake.mark";
const NEW_FILE: &str = "flake.mark.new";
/// How much of a file is read.
const LONGEST: usize = 2 * HALF + 1;

/// Reads the file; none if there is none.
pub fn read() -> Result<Option<Vec<u8>>, Error> {
    let read = || {
        let mut bytes = Vec::with_capacity(LONGEST);
        // A byte more shows a file that is longer, or a device that never ends.
        File::open(FILE)?.take(LONGEST as u64).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error("read", &error)),
    }
}

/// Writes one of the halves; returns false if there is no file.
pub fn write(half: usize, bytes: &[u8], durability: Durability) -> Result<bool, Error> {
    let write = |file: File| {
        file.write_all_at(bytes, (half * HALF) as u64)?;
        if durability == Durability::Flushed && is_fsync_on() { file.sync_data() } else { Ok(()) }
    };
    match OpenOptions::new().write(true).open(FILE) {
        Ok(file) => write(file).map(|()| true).map_err(|error| file_error("write", &error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(file_error("write", &error)),
    }
}

/// Writes a new file and renames it, so that it exists either whole or not at all.
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
        // A full disk may have left a part of it.
        let _ = remove_file(NEW_FILE);
        file_error("write", &error)
    })
}

/// Returns what identifies this run of the operating system; none where it has no such thing.
pub fn boot() -> Option<u64> {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    (!id.is_empty()).then(|| xxhash_rust::xxh3::xxh3_64(&id))
}

fn file_error(operation: &'static str, error: &io::Error) -> Error {
    // std appends the error's number.
    let mut reason = error.to_string();
    reason.truncate(reason.find(" (os error").unwrap_or(reason.len()));
    Error::MarkFile { operation, reason, kind: error.kind() }
}

/// Returns PostgreSQL's setting fsync.
#[allow(unsafe_code, reason = "reads PostgreSQL's variable")]
fn is_fsync_on() -> bool {
    // SAFETY: it is a boolean that only this process changes.
    unsafe { pgrx::pg_sys::enableFsync }
}
