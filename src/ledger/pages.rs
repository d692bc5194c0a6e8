//! Hints on where the page of a database is. A search of the catalog would cost more than everything else that a new session does for
//! its first ID. A hint can be wrong, so the caller checks what it finds.

use std::array::from_fn;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// How many databases have a hint. A database without one displaces another.
const HINTS: usize = 64;

/// The hints of some databases.
#[repr(C)]
pub struct Pages([Hint; HINTS]);

/// Where the page of a database is.
#[repr(C)]
#[derive(Default)]
pub struct Hint {
    /// The OID of the database in the upper half, and the OID of its sequence in the lower half.
    sequence: AtomicU64,
    /// The buffer that last held the page, or any other one.
    pub buffer: AtomicI32,
}

impl Default for Pages {
    fn default() -> Self {
        Self(from_fn(|_| Hint::default()))
    }
}

impl Pages {
    pub fn of(&self, database: u32) -> &Hint {
        &self.0[database as usize % HINTS]
    }
}

impl Hint {
    /// Returns the OID of a database's sequence; 0 if it is unknown.
    pub fn sequence(&self, database: u32) -> u32 {
        let known = self.sequence.load(Ordering::Relaxed);
        if (known >> 32) as u32 == database { known as u32 } else { 0 }
    }

    pub fn note(&self, database: u32, sequence: u32) {
        self.sequence.store(u64::from(database) << 32 | u64::from(sequence), Ordering::Relaxed);
    }
}
