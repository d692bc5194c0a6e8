//! A server: what is on its disk, and what is in its memory while it runs.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use flake_core::ledger::cursors::line::LaneCursors;
use flake_core::ledger::time::shared::Shared;
use flake_core::ledger::time::state::State;
use flake_core::watermark::ProcTransactions;
use flake_core::watermark::host::PreparedUse;
use flake_core::watermark::prepared::Prepared;

use crate::disk::File;
use crate::layouts::HOUR;
use crate::oracle::time;
use crate::procs::{Look, MOST_PREPARED, Procs};
use crate::rows::Watermark;
use crate::session::Session;
use crate::wal::{DATABASES, Wal};

/// The number of a server's procs.
pub const PROCS: usize = 2;

/// The number of lines that a server has for the cursors of lanes.
const LINES: usize = 16;

/// The memory of a server from its start on.
#[derive(Default)]
pub struct Memory {
    pub shared: Shared,
    pub lines: [LaneCursors; LINES],
    pub state: Mutex<State>,
    /// The right to change the ledger.
    pub writer: Mutex<()>,
    /// The locks of the pages.
    pub pages: [Mutex<()>; DATABASES],
    pub transactions: [ProcTransactions; PROCS],
    /// The entries of prepared transactions.
    pub prepared: Mutex<[Prepared; 2 * MOST_PREPARED + PROCS + 1]>,
    pub prepared_use: PreparedUse,
}

#[derive(Default)]
pub struct Machine {
    pub name: char,
    /// Whether it has a data directory; then whether it is running.
    pub exists: bool,
    pub is_up: bool,
    pub node: (u32, u32),
    /// How far its clock is ahead of the real time.
    pub offset: Arc<AtomicI64>,
    /// How far its IDs may lead the clock.
    pub max_lead: i64,
    pub file: Option<File>,
    /// A copy of the file.
    pub saved: Option<Vec<u8>>,
    pub disk_fails: bool,
    pub wal: Wal,
    /// The server that it follows as a standby, and how much of its WAL it has replayed.
    pub upstream: Option<usize>,
    /// The timeline of its WAL, with those before it, the first one first.
    pub history: Vec<u32>,
    /// How many numbers of timelines its next promotion leaves out.
    pub left_out: u32,
    /// A number of its last upgrade; 0 if there was none.
    pub upgrade: usize,
    /// The history that its WAL belongs to.
    pub branch: usize,
    pub memory: Arc<Memory>,
    pub sessions: [Option<Box<Session>>; PROCS],
    /// The database to which the next session of each proc connects.
    pub database: [usize; PROCS],
    /// A number that changes when anybody but the server changes its file.
    pub life: u64,
    /// The databases whose page a session has read in this life.
    pub has_looked: [bool; DATABASES],
    /// Promises of flake_start_above. They last as long as the file, or as the data of a database.
    pub promises: Vec<Promise>,
    /// From when on IDs are made, as flake_start_above or flake_accept_clock has returned, and how often the clock had been accepted
    /// by then. It holds until the clock is accepted or set back, or the memory is lost.
    pub start: Option<(Promise, u64)>,
    /// How often the clock was set back or the memory lost.
    pub setbacks: u64,
    /// The proc and database of a transaction that has dropped and created the extension.
    pub recreating: Option<(usize, usize)>,
    /// Its transactions.
    pub procs: Procs,
    /// The watermarks that its history has returned.
    pub watermarks: Vec<Watermark>,
    /// The watermarks that it has returned for snapshots that it took as a standby.
    pub replayed: Vec<Watermark>,
}

#[derive(Clone)]
pub struct Promise {
    pub instant: i64,
    /// None for all databases of this server.
    pub database: Option<usize>,
    pub record: usize,
    /// The procs of transactions that had begun before.
    pub waits_for: Vec<usize>,
}

impl Promise {
    /// Returns what is wrong with an ID of a session in a database, whose tick begins at an instant.
    pub fn broken_by(&self, (proc, database): (usize, usize), start: i64) -> Option<String> {
        let is_bound = !self.waits_for.contains(&proc) && self.database.is_none_or(|known| known == database);
        let below = || format!("an ID of {} is below {}", time(start), time(self.instant));
        (is_bound && start < self.instant).then(below)
    }
}

impl Machine {
    pub fn new(name: char, life: u64) -> Self {
        Self {
            name,
            node: (0, 2),
            max_lead: HOUR,
            history: vec![1],
            life,
            procs: Procs::recovered(&Wal::default()),
            ..Self::default()
        }
    }

    /// Forgets from when on IDs are made.
    pub fn set_back(&mut self) {
        self.start = None;
        self.setbacks += 1;
    }

    /// The promises bind the next transaction of a proc.
    pub fn waits_no_more_for(&mut self, proc: usize) {
        for promise in self.promises.iter_mut().chain(self.start.iter_mut().map(|(promise, _)| promise)) {
            promise.waits_for.retain(|&waits_for| waits_for != proc);
        }
    }

    /// The timeline of its WAL.
    pub fn timeline(&self) -> u32 {
        *self.history.last().unwrap()
    }

    pub fn offset(&self) -> i64 {
        self.offset.load(Ordering::Relaxed)
    }

    /// Takes a snapshot.
    pub fn look(&mut self, proc: usize, own: Option<u64>, order: u64, is_of_transaction: bool) -> Look {
        if self.recovers() {
            Look::of_replayed(&self.wal, order, is_of_transaction)
        } else {
            self.procs.look(proc, own, order, is_of_transaction)
        }
    }

    pub fn recovers(&self) -> bool {
        self.upstream.is_some()
    }

    pub fn makes_ids(&self) -> bool {
        self.is_up && !self.recovers()
    }
}
