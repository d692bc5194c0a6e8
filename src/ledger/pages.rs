//! In which sequence the page of a database lies, for sessions that have not looked yet, as a search of the catalog costs more than
//! all the rest of a first ID. It is a hint: who follows it looks at what it finds.

use std::sync::atomic::{AtomicU64, Ordering};

/// As many databases at a time; others that are in use displace them.
const PLACES: usize = 64;

/// In each place the OIDs of a database and of its sequence.
#[repr(C)]
pub struct Pages([AtomicU64; PLACES]);

impl Default for Pages {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; PLACES])
    }
}

impl Pages {
    fn place(&self, database: u32) -> &AtomicU64 {
        &self.0[database as usize % PLACES]
    }

    /// Returns the OID of a database's sequence; 0 if it is not known.
    pub fn of(&self, database: u32) -> u32 {
        let known = self.place(database).load(Ordering::Relaxed);
        if (known >> 32) as u32 == database { known as u32 } else { 0 }
    }

    /// Notes the OID of a database's sequence.
    pub fn note(&self, database: u32, sequence: u32) {
        self.place(database).store(u64::from(database) << 32 | u64::from(sequence), Ordering::Relaxed);
    }
}
