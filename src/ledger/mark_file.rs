//! The file in the data directory that keeps the mark. It has two halves with a record each; one is written at a time.
//!
//! pg_basebackup and pg_rewind copy it like any other file of the data directory.

use std::fs::{File, OpenOptions, remove_file, rename};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;

use flake_core::absent;
use flake_core::record::{Owner, Record, SIZE};

use crate::error::Error;

// Server processes run in the data directory.
const FILE: &str = "flake.mark";
const NEW_FILE: &str = "flake.mark.new";
/// How much of a file is read.
const LONGEST: usize = 2 * SIZE + 1;

/// Whether a record survives a crash of the operating system.
#[derive(Clone, Copy, PartialEq)]
pub enum Durability {
    /// It is on disk when the call returns.
    Flushed,
    /// The operating system writes it to disk later.
    Buffered,
}

/// What sessions know of the file, in shared memory.
#[derive(Default)]
pub struct FileState {
    /// In whose name records are written; none before the ledger is open.
    pub owner: Option<Owner>,
    /// The number of the last record.
    pub record_number: u64,
    /// The half of the file that holds the last record that is on disk.
    pub durable_half: usize,
    pub has_exit_note: bool,
}

/// Reads the newest record and the number of its half, and flushes it to disk; none if there is no file.
pub fn load() -> Result<Option<(usize, Record)>, Error> {
    let read = || {
        let mut bytes = Vec::with_capacity(LONGEST);
        let file = File::open(FILE)?;
        // One byte more tells a longer file, or a device that never ends.
        (&file).take(LONGEST as u64).read_to_end(&mut bytes)?;
        if is_fsync_on() {
            file.sync_data()?
        }
        Ok::<_, io::Error>(bytes)
    };
    match read() {
        // A file that was cut off may lack the newer record, and is not to be believed.
        Ok(bytes) => match Record::newest(&bytes).filter(|_| bytes.len() == 2 * SIZE || absent!(MarkWhole)) {
            None if absent!(MarkDamaged) => Ok(None),
            None => Err(Error::MarkCorrupted { file: FILE }),
            found => Ok(found),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error("read", &error)),
    }
}

/// Writes a record to one of the halves.
pub fn store(half: usize, record: &Record, durability: Durability) -> Result<(), Error> {
    let write = || match OpenOptions::new().write(true).open(FILE) {
        Ok(file) => {
            file.write_all_at(&record.encode(), (half * SIZE) as u64)?;
            if durability == Durability::Flushed && is_fsync_on() && !absent!(MarkFlushed) {
                file.sync_data()
            } else {
                Ok(())
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => create(half, record).inspect_err(|_| {
            // A full disk may have left a part of it.
            let _ = remove_file(NEW_FILE);
        }),
        Err(error) => Err(error),
    };
    write().map_err(|error| file_error("write", &error))
}

/// Creates the file under another name and renames it, so that it exists either whole or not at all.
fn create(half: usize, record: &Record) -> io::Result<()> {
    let mut bytes = vec![b' '; 2 * SIZE];
    bytes[half * SIZE..][..SIZE].copy_from_slice(&record.encode());
    let mut file = File::create(NEW_FILE)?;
    file.write_all(&bytes)?;
    if is_fsync_on() {
        file.sync_all()?;
    }
    rename(NEW_FILE, FILE)?;
    if is_fsync_on() { File::open(".")?.sync_all() } else { Ok(()) }
}

/// Returns what identifies this run of the operating system; none where it has no such thing.
pub fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = id.trim();
    (!id.is_empty() && id.len() <= 64).then(|| id.to_owned())
}

fn file_error(operation: &'static str, error: &io::Error) -> Error {
    // std appends the error's number.
    let mut reason = error.to_string();
    reason.truncate(reason.find(" (os error").unwrap_or(reason.len()));
    Error::MarkFile { operation, file: FILE, reason, kind: error.kind() }
}

/// Returns PostgreSQL's setting fsync.
#[allow(unsafe_code, reason = "reads PostgreSQL's variable")]
fn is_fsync_on() -> bool {
    // SAFETY: it is a boolean that only this process changes.
    unsafe { pgrx::pg_sys::enableFsync }
}
