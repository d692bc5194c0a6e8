//! The transactions of a server as snapshots see them: running, ended, prepared.

use std::cell::Cell;

use flake_core::watermark::host::QuerySnapshot;
use flake_core::watermark::prepared::Transactions;
use flake_core::watermark::{NONE, Snapshot};

use crate::machine::PROCS;
use crate::wal::{Record, Wal};

/// How many transactions can be prepared at once.
pub const MOST_PREPARED: usize = 2;
/// The first transaction ID.
const FIRST: u64 = 3;

/// A prepared transaction.
#[derive(Clone, Copy)]
pub struct PreparedOne {
    pub xid: u64,
    pub row: usize,
    pub database: usize,
    /// Other sessions can end it.
    pub is_valid: bool,
    /// A session is about to end it.
    pub is_locked: bool,
}

#[derive(Default)]
pub struct Procs {
    pub next: u64,
    pub running: Vec<u64>,
    pub latest_ended: u64,
    /// For each proc, the lowest transaction ID that its snapshots see as running.
    pub oldest: [u64; PROCS],
    pub prepared: Vec<PreparedOne>,
    /// The instants in the locks of prepared transactions.
    pub carried: Vec<(u64, i64)>,
    /// The rows that have become visible since the start, in that order.
    pub seen: Vec<usize>,
}

impl Procs {
    /// The transactions after a start: only prepared ones are running.
    pub fn recovered(wal: &Wal) -> Self {
        let mut new = Self { next: FIRST, oldest: [u64::MAX; PROCS], ..Self::default() };
        for (_, record) in &wal.records {
            match *record {
                Record::Prepare { xid, row, database, bound } => {
                    new.prepared.push(PreparedOne { xid, row, database, is_valid: true, is_locked: false });
                    if bound != NONE {
                        new.carried.push((xid, bound));
                    }
                    new.next = new.next.max(xid + 1);
                }
                Record::Commit(xid, _) | Record::Abort(xid) => {
                    new.prepared.retain(|one| one.xid != xid);
                    new.carried.retain(|one| one.0 != xid);
                    new.next = new.next.max(xid + 1);
                }
                Record::Start(next) => new.next = new.next.max(next),
                _ => {}
            }
        }
        new.running = new.prepared.iter().map(|one| one.xid).collect();
        new.latest_ended = new.next - 1;
        new
    }

    /// Assigns a transaction ID.
    pub fn assign(&mut self) -> u64 {
        self.running.push(self.next);
        self.next += 1;
        self.next - 1
    }

    /// Marks a transaction as ended, for new snapshots.
    pub fn ended(&mut self, xid: u64) {
        self.running.retain(|&running| running != xid);
        self.latest_ended = self.latest_ended.max(xid);
    }

    /// Takes a snapshot for a session, whose transaction may have an ID.
    pub fn look(&mut self, proc: usize, own: Option<u64>, order: u64, is_of_transaction: bool) -> Look {
        let xmax = self.latest_ended + 1;
        let running: Vec<u64> = self.running.iter().copied().filter(|&xid| xid < xmax && Some(xid) != own).collect();
        let xmin = running.iter().copied().chain(own).fold(xmax, u64::min);
        self.oldest[proc] = self.oldest[proc].min(xmin);
        let running = running.into_iter().map(|xid| xid as u32).collect();
        let seen = self.seen.len();
        Look { xmin, xmax, running, seen, replayed: None, order, is_of_transaction, note: Cell::new(None) }
    }
}

impl Transactions for Procs {
    fn is_running(&self, xid: u64) -> bool {
        self.running.contains(&xid)
    }

    fn latest_ended(&self) -> u64 {
        self.latest_ended
    }

    fn oldest_xmin(&self) -> u64 {
        self.running.iter().chain(&self.oldest).copied().fold(self.next, u64::min)
    }
}

/// A snapshot.
#[derive(Clone)]
pub struct Look {
    xmin: u64,
    xmax: u64,
    running: Vec<u32>,
    /// How many of the rows that became visible since the start it sees.
    pub seen: usize,
    /// How many records were replayed, if it was taken on a standby.
    pub replayed: Option<usize>,
    /// Its place in the order of snapshots and commits.
    pub order: u64,
    is_of_transaction: bool,
    note: Cell<Option<i64>>,
}

impl Look {
    /// Takes a snapshot on a standby, which knows transactions from the WAL only.
    pub fn of_replayed(wal: &Wal, order: u64, is_of_transaction: bool) -> Self {
        let (mut known, mut latest_ended, mut running) = (FIRST, FIRST - 1, Vec::new());
        let mut prepared = Vec::new();
        for (_, record) in &wal.records {
            let (xid, ends) = match *record {
                Record::Prepare { xid, .. } => (xid, false),
                Record::Commit(xid, _) | Record::Abort(xid) if xid >= FIRST => (xid, true),
                Record::Start(next) => {
                    running.retain(|xid| prepared.contains(xid));
                    (known, latest_ended) = (known.max(next), latest_ended.max(next - 1));
                    continue;
                }
                _ => continue,
            };
            // Transactions that the standby has not heard of may be running.
            running.extend(known..=xid);
            known = known.max(xid + 1);
            if ends {
                running.retain(|&other| other != xid);
                latest_ended = latest_ended.max(xid);
            } else {
                prepared.push(xid);
            }
        }
        let xmax = latest_ended + 1;
        let xmin = running.into_iter().fold(xmax, u64::min);
        let (seen, replayed, note) = (0, Some(wal.records.len()), Cell::new(None));
        Self { xmin, xmax, running: Vec::new(), seen, replayed, order, is_of_transaction, note }
    }
}

impl QuerySnapshot for Look {
    fn transactions(&self) -> Snapshot<'_> {
        Snapshot { xmin: self.xmin, xmax: self.xmax, running: &self.running }
    }

    fn cached_watermark(&self) -> Option<i64> {
        self.note.get()
    }

    fn cache_watermark(&self, instant: i64) {
        self.note.set(Some(instant));
    }

    fn is_of_transaction(&self) -> bool {
        self.is_of_transaction
    }
}
