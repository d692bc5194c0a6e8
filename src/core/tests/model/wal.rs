//! The write-ahead log: every record that any server has written, each with the one before it, so that the logs of servers
//! that have parted are branches of one tree. Whoever replays a record has replayed all before it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use flake_core::Node;
use flake_core::marks::Marks;

use crate::layouts::MORNING;
use crate::oracle::Row;

pub const DATABASES: usize = 2;

/// What all servers have in common: time as it really is, and all records that were ever written.
pub struct World {
    pub time: Cell<i64>,
    records: RefCell<Vec<Record>>,
    numbers: Cell<u32>,
}

/// A record of the log, as far as it concerns IDs and who reads them.
#[derive(Clone, Copy)]
pub struct Record {
    before: usize,
    /// When it was written.
    pub at: i64,
    /// By the writer's clock.
    pub clock: i64,
    /// When the latest tick began that the writer had used in each database.
    pub latest: [i64; DATABASES],
    pub change: Change,
}

#[derive(Clone, Copy)]
pub enum Change {
    Nothing,
    Raised {
        database: usize,
        node: Node,
        mark: i64,
        memory: u32,
        binds: bool,
    },
    Committed(Row),
    Prepared {
        row: Row,
        bound: i64,
    },
    EndedPrepared {
        xid: u64,
        commits: bool,
    },
    /// No record of PostgreSQL: up to here, somebody has been promised that nothing appears below an instant.
    Promised {
        database: usize,
        horizon: i64,
    },
    /// Nor this: somebody was warned that horizons after this instant do not hold any more.
    Warned {
        from: i64,
    },
    Timeline(u32),
}

impl World {
    pub fn new() -> Rc<Self> {
        let root = Record { before: 0, at: 0, clock: 0, latest: [0; DATABASES], change: Change::Nothing };
        Rc::new(Self { time: Cell::new(MORNING), records: RefCell::new(vec![root]), numbers: Cell::new(0) })
    }

    /// Returns a number that nothing else has.
    pub fn number(&self) -> u32 {
        self.numbers.set(self.numbers.get() + 1);
        self.numbers.get()
    }

    pub fn record(&self, position: usize) -> Record {
        self.records.borrow()[position]
    }

    /// Returns the last record that two logs have in common.
    pub fn common(&self, mut one: usize, mut other: usize) -> usize {
        let records = self.records.borrow();
        while one != other {
            if one > other { one = records[one].before } else { other = records[other].before }
        }
        one
    }

    /// Returns the records after a position, up to the end of a log that goes on from there; none if it does not.
    pub fn after(&self, position: usize, mut end: usize) -> Option<Vec<usize>> {
        let records = self.records.borrow();
        let mut path = Vec::new();
        while end > position {
            path.push(end);
            end = records[end].before;
        }
        path.reverse();
        (end == position).then_some(path)
    }
}

/// One server's log, and what it has come to by it.
#[derive(Clone)]
pub struct Wal {
    world: Rc<World>,
    /// The last record.
    pub end: usize,
    pub pages: [Marks; DATABASES],
    /// No row below may appear in a database.
    pub promised: [i64; DATABASES],
    /// How often somebody was warned that this does not hold any more.
    pub warnings: u32,
    pub committed: Vec<Row>,
    pub prepared: Vec<(Row, i64)>,
    pub next_xid: u64,
    pub latest_ended: u64,
    pub timeline: u32,
}

impl Wal {
    pub fn new(world: &Rc<World>) -> Self {
        Self {
            world: Rc::clone(world),
            end: 0,
            pages: [Marks::new(None); DATABASES],
            promised: [i64::MIN; DATABASES],
            warnings: 0,
            committed: Vec::new(),
            prepared: Vec::new(),
            next_xid: 100,
            latest_ended: 99,
            timeline: 1,
        }
    }

    /// Writes a record.
    pub fn write(&mut self, clock: i64, latest: [i64; DATABASES], change: Change) {
        let record = Record { before: self.end, at: self.world.time.get(), clock, latest, change };
        let mut records = self.world.records.borrow_mut();
        records.push(record);
        self.end = records.len() - 1;
        drop(records);
        self.apply(change);
    }

    /// Replays what another log has after this one, `most` records of it. Returns how many there were.
    pub fn replay(&mut self, end: usize, most: usize) -> Option<usize> {
        let path = self.world.after(self.end, end)?;
        for &position in path.iter().take(most) {
            self.end = position;
            self.apply(self.world.record(position).change);
        }
        Some(path.len().min(most))
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Nothing => {}
            Change::Raised { database, node, mark, memory, binds } => {
                self.pages[database].raise(node, mark, memory);
                if binds {
                    self.pages[database].bind(mark, memory);
                }
            }
            Change::Committed(row) => {
                self.committed.push(row);
                self.ended(row.xid);
            }
            Change::Prepared { row, bound } => {
                self.prepared.push((row, bound));
                self.next_xid = self.next_xid.max(row.xid + 1);
            }
            Change::EndedPrepared { xid, commits } => {
                if let Some(at) = self.prepared.iter().position(|(row, _)| row.xid == xid) {
                    let (row, _) = self.prepared.remove(at);
                    if commits {
                        self.committed.push(row);
                    }
                }
                self.ended(xid);
            }
            Change::Promised { database, horizon } => {
                self.promised[database] = self.promised[database].max(horizon);
            }
            Change::Warned { from } => {
                self.warnings += 1;
                self.promised.iter_mut().for_each(|promised| *promised = from.min(*promised));
            }
            Change::Timeline(timeline) => self.timeline = timeline,
        }
    }

    /// Begins to be written: from now on, snapshots see which of the transactions so far are prepared.
    pub fn begin(&mut self) {
        self.latest_ended = self.next_xid - 1;
    }

    /// Notes that a transaction has ended, in the eyes of new snapshots.
    pub fn ended(&mut self, xid: u64) {
        self.latest_ended = self.latest_ended.max(xid);
        self.next_xid = self.next_xid.max(xid + 1);
    }
}
