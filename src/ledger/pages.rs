//! In which sequence the page of a database lies, for sessions that have not looked yet, as a search of the catalog costs more than
//! all the rest of a first ID; and in which buffer. Both are hints: who follows them looks at what it finds.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// As many databases at a time; others that are in use displace them.
const PLACES: usize = 64;

/// In each place the OIDs of a database and of its sequence; and a buffer.
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

    /// Returns the OID of a database's sequence; 0 if it is not known.
    pub fn of(&self, database: u32) -> u32 {
        let known = self.place(database).load(Ordering::Relaxed);
        if (known >> 32) as u32 == database { known as u32 } else { 0 }
    }

    /// The buffer that a database's page was in last, or another one.
    pub fn buffer(&self, database: u32) -> &AtomicI32 {
        &self.buffers[database as usize % PLACES]
    }

    /// Notes the OID of a database's sequence.
    pub fn note(&self, database: u32, sequence: u32) {
        self.place(database).store(u64::from(database) << 32 | u64::from(sequence), Ordering::Relaxed);
    }
}
