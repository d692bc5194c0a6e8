//! Hints on where the page of a database is: the OID of its sequence, and the buffer. A search of the catalog would cost more than
//! everything else that a new session does for its first ID. A hint can be wrong, so the caller checks what it finds.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// How many databases have a place. A database without one displaces another.
const PLACES: usize = 64;

/// Each place has the OID of a database, the OID of its sequence, and a buffer.
#[repr(C)]
pub struct Pages {
    sequences: [AtomicU64; PLACES],
    buffers: [AtomicI32; PLACES],
}

impl Default for Pages {
    fn default() -> Self {
        Self { sequences: [const { AtomicU64::new(0) }; PLACES], buffers: [const { AtomicI32::new(0) }; PLACES] }
    }
}

impl Pages {
    fn place(&self, database: u32) -> &AtomicU64 {
        &self.sequences[database as usize % PLACES]
    }

    /// Returns the OID of a database's sequence; 0 if it is unknown.
    pub fn of(&self, database: u32) -> u32 {
        let known = self.place(database).load(Ordering::Relaxed);
        if (known >> 32) as u32 == database { known as u32 } else { 0 }
    }

    /// Returns the buffer that last held a database's page, or any other one.
    pub fn buffer(&self, database: u32) -> &AtomicI32 {
        &self.buffers[database as usize % PLACES]
    }

    /// Records the OID of a database's sequence.
    pub fn note(&self, database: u32, sequence: u32) {
        self.place(database).store(u64::from(database) << 32 | u64::from(sequence), Ordering::Relaxed);
    }
}
