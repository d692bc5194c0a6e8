//! A server: what is on its disk, and what is in its memory while it runs.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use flake_core::SlotProgress;
use flake_core::horizon::SlotTransactions;
use flake_core::horizon::host::PreparedUse;
use flake_core::horizon::prepared::Prepared;
use flake_core::ledger::host::{Shared, State};
use flake_core::ledger::line::Line;

use crate::disk::File;
use crate::oracle::time;
use crate::procs::{Look, MOST_PREPARED, Procs};
use crate::rows::Horizon;
use crate::session::Session;
use crate::wal::{DATABASES, Wal};

/// The number of a server's slots.
pub const SLOTS: usize = 2;

/// The number of lines that a server has for the words of lanes.
const LINES: usize = 16;

/// The memory of a server from its start on.
pub struct Memory {
    pub shared: Shared,
    pub lines: [Line; LINES],
    pub state: Mutex<State>,
    /// The right to change the ledger.
    pub writer: Mutex<()>,
    /// The locks of the pages.
    pub pages: [Mutex<()>; DATABASES],
    pub slots: [Mutex<SlotProgress>; SLOTS],
    pub transactions: [SlotTransactions; SLOTS],
    /// The entries of prepared transactions.
    pub prepared: Mutex<[Prepared; 2 * MOST_PREPARED + SLOTS + 1]>,
    pub prepared_use: PreparedUse,
}

impl Memory {
    pub fn new(started_at: Option<i64>) -> Arc<Self> {
        Arc::new(Self {
            shared: Shared::default(),
            lines: Default::default(),
            state: Mutex::new(State { started_at, ..State::default() }),
            pages: Default::default(),
            slots: Default::default(),
            writer: Mutex::default(),
            transactions: Default::default(),
            prepared: Mutex::default(),
            prepared_use: PreparedUse::default(),
        })
    }
}

pub struct Machine {
    pub name: char,
    /// Whether it has a data directory; then whether it is running.
    pub exists: bool,
    pub is_up: bool,
    pub node: (u32, u32),
    /// How far its clock is ahead of the real time.
    pub offset: Arc<AtomicI64>,
    /// When its clock was set, and how far it was ahead from then on.
    pub steps: Vec<(i64, i64)>,
    /// Counts the starts of its operating system.
    pub boot: u64,
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
    pub upgrade: u64,
    /// The history that its WAL belongs to.
    pub branch: usize,
    pub memory: Arc<Memory>,
    pub sessions: [Option<Box<Session>>; SLOTS],
    /// The database to which the next session of each slot connects.
    pub database: [usize; SLOTS],
    /// A number that changes when anybody but the server changes its file.
    pub life: u64,
    /// The databases whose page a session has read in this life.
    pub has_looked: [bool; DATABASES],
    /// Promises of flake_start_above. They last as long as the file, or as the data of a database.
    pub promises: Vec<Promise>,
    /// Whether its clock was ever ahead of the real time, or flake_start_above was called.
    pub may_wait: bool,
    /// The slot and database of a transaction that has dropped and created the extension.
    pub recreating: Option<(usize, usize)>,
    /// Its transactions.
    pub procs: Procs,
    /// The horizons that its history has returned.
    pub horizons: Vec<Horizon>,
    /// The horizons that it has published in its pages.
    pub published: Vec<Horizon>,
    /// The horizons that it has returned for snapshots that it took as a standby.
    pub replayed: Vec<Horizon>,
    /// How often its clock was accepted: the calls that have begun and the calls that have ended.
    pub acceptances: u64,
    /// How many sessions are accepting it.
    pub accepting: usize,
    /// When the clock was accepted, and what it showed. The file has the same.
    pub taken_back: Vec<(i64, i64)>,
}

#[derive(Clone)]
pub struct Promise {
    pub instant: i64,
    /// From when on sessions make IDs, which the call has returned. It holds for this server as long as its number is the same, its
    /// clock is not set back, and nobody accepts the clock.
    pub from: i64,
    /// The reading of the clock when the call returned. A session that had read it before can still make an ID of that reading.
    pub returned_at: i64,
    /// None for all databases of this server.
    pub database: Option<usize>,
    pub record: usize,
    /// The slots of transactions that had begun before.
    pub waits_for: Vec<usize>,
}

impl Promise {
    /// Returns what is wrong with an ID of a session in a database, which begins at an instant and whose tick ends at another one. `read`
    /// is the reading of the clock for it.
    pub fn broken_by(&self, (slot, database): (usize, usize), start: i64, end: i64, read: i64) -> Option<String> {
        if self.waits_for.contains(&slot) || self.database.is_some_and(|known| known != database) {
            return None;
        }
        let below = |instant| format!("an ID of {} is below {}", time(start), time(instant));
        if start < self.instant {
            return Some(below(self.instant));
        }
        (end <= self.from && read > self.returned_at)
            .then(|| format!("{}, which flake_start_above has returned", below(self.from)))
    }
}

impl Machine {
    /// Forgets what flake_start_above has returned, which does not hold any more; its argument does.
    pub fn forget_returned(&mut self) {
        self.promises.iter_mut().for_each(|promise| promise.from = promise.instant);
    }

    pub fn new(name: char, life: u64) -> Self {
        Self {
            name,
            exists: false,
            is_up: false,
            node: (0, 2),
            offset: Arc::default(),
            steps: Vec::new(),
            boot: 1,
            file: None,
            saved: None,
            disk_fails: false,
            wal: Wal::default(),
            upstream: None,
            history: vec![1],
            left_out: 0,
            upgrade: 0,
            branch: 0,
            memory: Memory::new(None),
            sessions: Default::default(),
            database: [0; SLOTS],
            life,
            has_looked: [false; DATABASES],
            promises: Vec::new(),
            may_wait: false,
            recreating: None,
            procs: Procs::recovered(&Wal::default()),
            horizons: Vec::new(),
            published: Vec::new(),
            replayed: Vec::new(),
            acceptances: 0,
            accepting: 0,
            taken_back: Vec::new(),
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
    pub fn look(&mut self, slot: usize, own: Option<u64>, order: u64, is_of_transaction: bool) -> Look {
        if self.recovers() {
            Look::of_replayed(&self.wal, order, is_of_transaction)
        } else {
            self.procs.look(slot, own, order, is_of_transaction)
        }
    }

    pub fn recovers(&self) -> bool {
        self.upstream.is_some()
    }

    pub fn makes_ids(&self) -> bool {
        self.is_up && !self.recovers()
    }
}
