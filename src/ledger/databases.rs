//! What is known of the marks in each database's page; the oldest databases are forgotten.

const ROOM: usize = 64;

/// Up to 64 databases, as plain numbers.
#[derive(Clone, Copy)]
pub struct Databases {
    known: [Database; ROOM],
    added: usize,
}

/// A database whose marks the ledger is above.
#[derive(Clone, Copy)]
struct Database {
    oid: u32,
    /// This node's mark in the page is on disk, and at this instant or above.
    covered: i64,
}

impl Default for Databases {
    fn default() -> Self {
        Self { known: [Database { oid: 0, covered: i64::MIN }; ROOM], added: 0 }
    }
}

impl Databases {
    fn find(&mut self, oid: u32) -> Option<&mut Database> {
        self.known.iter_mut().find(|database| database.oid == oid)
    }

    /// Returns whether the ledger is above the marks of a database.
    pub fn contains(&self, oid: u32) -> bool {
        self.known.iter().any(|database| database.oid == oid)
    }

    /// Remembers that the ledger is above the marks of a database.
    pub fn add(&mut self, oid: u32) {
        if !self.contains(oid) {
            self.known[self.added % ROOM] = Database { oid, covered: i64::MIN };
            self.added += 1;
        }
    }

    /// Returns up to where this node's mark is known to be on disk in the page of a database.
    pub fn covered(&mut self, oid: u32) -> i64 {
        self.find(oid).map_or(i64::MIN, |database| database.covered)
    }

    /// Remembers up to where that is, for other sessions.
    pub fn cover(&mut self, oid: u32, mark: i64) {
        if let Some(database) = self.find(oid) {
            database.covered = database.covered.max(mark);
        }
    }
}
