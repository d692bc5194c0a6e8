//! The log of a server, which standbys replay, and the pages that travel with it.

use std::sync::Arc;

use flake_core::ledger::host::Page;
use flake_core::ledger::marks::Marks;

pub const DATABASES: usize = 2;

/// The extension in a database: none where it does not exist.
pub type Extension = Option<Arc<Page>>;

/// A record.
#[derive(Clone)]
pub enum Record {
    /// A transaction that has committed, and its rows.
    Commit(u64, Option<usize>),
    /// One that was prepared, and the instant that it carries.
    Prepare { xid: u64, row: usize, database: usize, bound: i64 },
    /// One that is rolled back.
    Abort(u64),
    /// The server has started: of the transactions before this number, only prepared ones run.
    Start(u64),
    /// A database is created, with this number.
    Database(usize, usize),
    /// The extension of a database is this from now on.
    Extension(usize, Extension),
}

/// A server's log from its beginning on.
#[derive(Clone, Default)]
pub struct Wal {
    pub records: Vec<(i64, Record)>,
    /// So many of them are on disk.
    pub flushed: usize,
    /// The extension of each database by them, and the number of the record that says so.
    pub databases: [(Extension, usize); DATABASES],
    /// The numbers of the databases, which do not come again as OIDs do.
    pub numbers: [usize; DATABASES],
}

impl Wal {
    /// Writes a record; returns its number.
    pub fn write(&mut self, time: i64, record: Record) -> usize {
        match &record {
            Record::Extension(database, extension) => {
                self.databases[*database] = (extension.clone(), self.records.len() + 1);
            }
            Record::Database(database, number) => self.numbers[*database] = *number,
            _ => {}
        }
        self.records.push((time, record));
        self.records.len()
    }

    /// How often a clock was accepted, as the page of a database says.
    pub fn acceptances_in(&self, database: usize) -> u32 {
        let bytes = self.databases[database].0.as_ref().and_then(|page| page.bytes.as_ref());
        bytes.and_then(|bytes| Marks::decode(bytes).ok()).map_or(0, |(marks, _)| marks.bound.recalls)
    }

    /// The same by all pages.
    pub fn acceptances(&self) -> u32 {
        (0..DATABASES).map(|database| self.acceptances_in(database)).max().unwrap_or_default()
    }

    pub fn flush(&mut self, upto: usize) {
        self.flushed = self.flushed.max(upto.min(self.records.len()));
    }

    /// The server has crashed: what was not flushed is lost.
    pub fn crash(&mut self) {
        self.records.truncate(self.flushed);
        for database in 0..DATABASES {
            if self.databases[database].1 > self.flushed {
                self.databases[database] = self.last_of(database);
            }
        }
    }

    fn last_of(&self, wanted: usize) -> (Extension, usize) {
        let last = self.records.iter().enumerate().rev().find_map(|(at, (_, record))| match record {
            Record::Extension(database, extension) if *database == wanted => Some((extension.clone(), at + 1)),
            _ => None,
        });
        last.unwrap_or((None, 0))
    }
}
