//! The file in the data directory that keeps the mark: two places for records, of which one is written at a time.
//!
//! pg_basebackup and pg_rewind copy it like any file of the data directory.

use std::fs::{File, OpenOptions, rename};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;

use flake_core::Error;
use flake_core::record::{Record, SIZE};

// Server processes work in the data directory.
const FILE: &str = "flake.mark";
const NEW_FILE: &str = "flake.mark.new";

/// The newest record and its place, forced to disk; none when there is no file.
pub fn load() -> Result<Option<(usize, Record)>, Error> {
    let read = || {
        let mut bytes = Vec::new();
        let mut file = File::open(FILE)?;
        file.read_to_end(&mut bytes)?;
        if fsync() {
            file.sync_data()?
        }
        Ok::<_, io::Error>(bytes)
    };
    match read() {
        Ok(bytes) => match Record::newest(&bytes) {
            None => Err(Error::Mark { attempt: "use", file: FILE, reason: None, kind: ErrorKind::InvalidData }),
            found => Ok(found),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fault("read", &error)),
    }
}

/// Writes a record to one of the two places. With `force` it is on disk afterwards; else it is lost when the operating
/// system fails.
pub fn store(place: usize, record: &Record, force: bool) -> Result<(), Error> {
    let write = || match OpenOptions::new().write(true).open(FILE) {
        Ok(file) => {
            file.write_all_at(&record.encode(), (place * SIZE) as u64)?;
            if force && fsync() { file.sync_data() } else { Ok(()) }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => create(place, record),
        Err(error) => Err(error),
    };
    write().map_err(|error| fault("write", &error))
}

/// Makes the file, whole or not at all.
fn create(place: usize, record: &Record) -> io::Result<()> {
    let mut bytes = vec![b' '; 2 * SIZE];
    bytes[place * SIZE..][..SIZE].copy_from_slice(&record.encode());
    let mut file = File::create(NEW_FILE)?;
    file.write_all(&bytes)?;
    if fsync() {
        file.sync_all()?;
    }
    rename(NEW_FILE, FILE)?;
    if fsync() { File::open(".")?.sync_all() } else { Ok(()) }
}

/// Which run of the operating system this is; none where it does not say.
pub fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = id.trim();
    (!id.is_empty() && id.len() <= 64).then(|| id.to_owned())
}

fn fault(attempt: &'static str, error: &io::Error) -> Error {
    Error::Mark { attempt, file: FILE, reason: Some(error.to_string()), kind: error.kind() }
}

/// PostgreSQL's setting.
#[allow(unsafe_code, reason = "reads PostgreSQL's variable")]
fn fsync() -> bool {
    // SAFETY: a boolean that only this process changes.
    unsafe { pgrx::pg_sys::enableFsync }
}
