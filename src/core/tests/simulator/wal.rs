//! The WAL of a server, which standbys replay, and the pages that it carries.

use std::sync::Arc;

use flake_core::ledger::durable::record::{Record as Reserving, Reserved};
use flake_core::ledger::host::Page;

pub const DATABASES: usize = 2;

/// The page of the extension in a database; None if the extension does not exist.
pub type Extension = Option<Arc<Page>>;

/// A WAL record.
#[derive(Clone)]
pub enum Record {
    /// The commit of a transaction, and its rows.
    Commit(u64, Option<usize>),
    /// A prepared transaction, and the instant that its lock carries.
    Prepare { xid: u64, row: usize, database: usize, bound: i64 },
    /// The rollback of a prepared transaction.
    Abort(u64),
    /// The start of the server: of the transactions before this ID, only prepared ones are running.
    Start(u64),
    /// The creation of a database, which gets this number.
    Database(usize, usize),
    /// The page of a database from now on.
    Extension(usize, Extension),
}

/// The WAL of a server from its beginning on.
#[derive(Clone, Default)]
pub struct Wal {
    pub records: Vec<(i64, Record)>,
    /// How many of the records are on disk.
    pub flushed: usize,
    /// The page of each database after these records, and the record that it is from.
    pub databases: [(Extension, usize); DATABASES],
    /// The numbers of the databases. Unlike OIDs, they are never used again.
    pub numbers: [usize; DATABASES],
}

impl Wal {
    /// Writes a record. Returns its number.
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

    /// Which time is reserved, according to the page of a database that is on disk.
    pub fn reserved_in(&self, database: usize) -> Reserved {
        let (extension, _) = self.last_of(database, self.flushed);
        let bytes = extension.as_ref().and_then(|page| page.bytes.as_ref());
        let record = bytes.and_then(|bytes| Reserving::decode(bytes).ok());
        record.map_or(Reserved::NONE, |(record, _)| record.reserved)
    }

    pub fn flush(&mut self, upto: usize) {
        self.flushed = self.flushed.max(upto.min(self.records.len()));
    }

    /// Lets the server crash: records that were not flushed are lost.
    pub fn crash(&mut self) {
        self.records.truncate(self.flushed);
        for database in 0..DATABASES {
            if self.databases[database].1 > self.flushed {
                self.databases[database] = self.last_of(database, self.flushed);
            }
        }
    }

    /// The page of a database after some records, and the record that it is from.
    fn last_of(&self, wanted: usize, upto: usize) -> (Extension, usize) {
        let last = self.records[..upto].iter().enumerate().rev().find_map(|(at, (_, record))| match record {
            Record::Extension(database, extension) if *database == wanted => Some((extension.clone(), at + 1)),
            _ => None,
        });
        last.unwrap_or((None, 0))
    }
}
