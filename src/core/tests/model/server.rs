//! One server: its clock, its disk and its memory, and how its ledger is opened.

use std::rc::Rc;
use std::sync::atomic::{AtomicI64, Ordering};

use flake_core::horizon::SlotTransactions;
use flake_core::horizon::prepared::Prepared;
use flake_core::opening::Opening;
use flake_core::record::{ExitNote, Owner, Record};
use flake_core::{Ledger, Node, SlotProgress};

use crate::session::Session;
use crate::transaction::MOST_PREPARED;
use crate::wal::{Change, DATABASES, Wal, World};

/// Slots that sessions of stories use; servers have some more.
pub const SLOTS: usize = 3;
/// Entries for prepared transactions: no more than there have to be, so that they are merged.
const PREPARED: usize = SLOTS + MOST_PREPARED + 1;

pub struct Server {
    pub world: Rc<World>,
    pub name: char,
    pub node: Node,
    /// How many slots it has.
    pub slots: u32,
    /// Its clock minus the real time.
    pub offset: i64,
    pub wal: Wal,
    /// The server that it is a standby of.
    pub upstream: Option<usize>,
    pub file: Option<Record>,
    /// A base backup: its file, and the end of its log.
    pub backup: Option<(Option<Record>, usize)>,
    pub disk_fails: bool,
    pub allow_in_recovery: bool,
    /// Counts the starts of the operating system.
    pub boot: u32,
    /// A number that lasts as long as the server has the file that it has written itself.
    pub history: u32,
    /// A file was copied here by pg_rewind or a base backup of another server.
    pub was_rewound: bool,
    /// What the clock was when the ledger was first opened, since the promotion or since the file was replaced.
    pub opened: Option<i64>,
    /// A number of this server start.
    pub life: u32,
    /// When the latest tick began that was used in each database.
    pub latest: [i64; DATABASES],
    pub memory: Memory,
    pub sessions: [Option<Box<Session>>; SLOTS],
}

/// Why there is no ID or horizon now.
#[derive(Debug)]
pub enum Refused {
    DiskFails,
    InRecovery,
    HorizonNotYet,
    Unpublished,
}

/// What a server keeps in memory from its start on.
pub struct Memory {
    pub ledger: Option<(Ledger, Owner)>,
    pub preloaded_at: Option<i64>,
    pub opened_in_recovery: bool,
    pub compared: [bool; DATABASES],
    /// This node's marks in the pages are as high as this.
    pub covered: [i64; DATABASES],
    pub last_seen: i64,
    /// Sessions that have exited have used only ticks that start before this instant.
    pub free_from: i64,
    /// The same of those without memory for their slots.
    pub unstored_floor: i64,
    /// How often the clock was accepted.
    pub recalls: u32,
    pub progress: [SlotProgress; SLOTS],
    /// How many sessions have joined.
    pub joined: usize,
    pub running: Vec<u64>,
    pub slots: [SlotTransactions; SLOTS],
    pub announced: AtomicI64,
    /// What binds every node in the pages that were compared.
    pub bound: i64,
    pub prepared: [Prepared; PREPARED],
    pub first_xid: u64,
    pub prepared_are_known: bool,
    pub unpublished: usize,
    pub unpublished_until: u64,
}

impl Memory {
    pub fn new(preloaded_at: Option<i64>) -> Self {
        Self {
            ledger: None,
            preloaded_at,
            opened_in_recovery: false,
            compared: [false; DATABASES],
            covered: [i64::MIN; DATABASES],
            last_seen: i64::MIN,
            free_from: i64::MIN,
            unstored_floor: i64::MIN,
            recalls: 0,
            progress: Default::default(),
            joined: 0,
            running: Vec::new(),
            slots: Default::default(),
            announced: AtomicI64::new(i64::MIN),
            bound: i64::MIN,
            prepared: Default::default(),
            first_xid: 0,
            prepared_are_known: false,
            unpublished: 0,
            unpublished_until: 0,
        }
    }

    /// The ledger, which sessions have opened before they ask for it.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger.as_ref().unwrap().0
    }
}

impl Server {
    /// Creates a server in whose databases the extension has just been created.
    pub fn new(world: &Rc<World>, name: char, node: Node) -> Self {
        let mut server = Self {
            world: Rc::clone(world),
            name,
            node,
            slots: SLOTS as u32,
            offset: 0,
            wal: Wal::new(world),
            upstream: None,
            file: None,
            backup: None,
            disk_fails: false,
            allow_in_recovery: false,
            boot: 0,
            history: world.number(),
            was_rewound: false,
            opened: None,
            life: world.number(),
            latest: [i64::MIN; DATABASES],
            memory: Memory::new(None),
            sessions: Default::default(),
        };
        for database in 0..DATABASES {
            server.open(database).unwrap();
            let mark = server.memory.ledger().greatest_mark();
            server.raise(database, mark);
        }
        server
    }

    pub fn clock(&self) -> i64 {
        self.world.time.get() + self.offset
    }

    /// Reads the clock, which takes time.
    pub fn read_clock(&self) -> i64 {
        self.world.time.set(self.world.time.get() + 1);
        self.clock()
    }

    pub fn recovers(&self) -> bool {
        self.upstream.is_some()
    }

    pub fn boot_id(&self) -> String {
        format!("{}{}", self.name, self.boot)
    }

    pub fn write(&mut self, change: Change) {
        self.wal.write(self.clock(), self.latest, change);
    }

    pub fn store(&mut self, ledger: &Ledger, owner: Owner, exit_note: Option<ExitNote>) -> Result<(), Refused> {
        if self.disk_fails {
            return Err(Refused::DiskFails);
        }
        self.file = Some(Record::new(1, owner, ledger.timeline(), exit_note));
        Ok(())
    }

    /// Writes the ledger to disk, then puts it in force.
    pub fn replace(&mut self, ledger: Ledger, exit_note: Option<ExitNote>) -> Result<(), Refused> {
        let owner = self.memory.ledger.as_ref().unwrap().1;
        self.store(&ledger, owner, exit_note)?;
        self.memory.ledger = Some((ledger, owner));
        Ok(())
    }

    /// What `open` in src/ledger/open.rs does: the first session that needs the ledger opens it, and the first one of each
    /// database raises it.
    pub fn open(&mut self, database: usize) -> Result<(), Refused> {
        let in_recovery = self.recovers();
        let present = self.memory.ledger;
        if present.is_some() && self.memory.opened_in_recovery == in_recovery && self.memory.compared[database] {
            return Ok(());
        }
        let wal_timeline = if in_recovery { 0 } else { self.wal.timeline };
        let opening = Opening {
            now: self.clock(),
            started_at: self.memory.preloaded_at,
            node: self.node,
            wal_timeline,
            new_memory: self.world.number(),
            known: self.wal.pages[database].of(self.node),
        };
        let (ledger, mut owner, exit_note) = match present {
            Some((ledger, owner)) => {
                let (raised, owner) = opening.raised(ledger, owner);
                (raised, owner, None)
            }
            None => opening.ledger(self.file.clone(), Some(&self.boot_id())),
        };
        owner.wal_timeline = wal_timeline;
        let is_promoted = self.memory.opened_in_recovery && !in_recovery;
        let present = present.map(|(ledger, _)| ledger);
        if present != Some(ledger) || is_promoted {
            self.store(&ledger, owner, exit_note)?;
        }
        self.memory.ledger = Some((ledger, owner));
        if is_promoted {
            self.memory.compared = Default::default();
            self.memory.covered = [i64::MIN; DATABASES];
        }
        if present.is_none() || is_promoted {
            self.memory.first_xid = self.wal.next_xid;
        }
        self.opened.get_or_insert(opening.now);
        // Sessions that joined before go on in time that was granted to them, unless it may lie below another's horizon.
        if let Some((instant, memory)) = opening.known.binding
            && present.is_some()
            && memory != owner.memory
        {
            self.memory.announced.fetch_max(instant, Ordering::SeqCst);
        }
        self.memory.bound = self.memory.bound.max(self.wal.pages[database].binding());
        self.memory.compared[database] = true;
        self.memory.opened_in_recovery = in_recovery;
        Ok(())
    }

    /// Raises this node's mark in a page.
    pub fn raise(&mut self, database: usize, mark: i64) {
        let binds = self.memory.announced.load(Ordering::Acquire) > i64::MIN;
        self.change_page(database, mark, binds);
    }

    pub fn change_page(&mut self, database: usize, mark: i64, binds: bool) {
        let page = &self.wal.pages[database];
        if page.own(self.node) < Some(mark) || binds && page.binding() < mark {
            let memory = self.memory.ledger.as_ref().unwrap().1.memory;
            self.write(Change::Raised { database, node: self.node, mark, memory, binds });
        }
        self.memory.covered[database] = self.memory.covered[database].max(mark);
    }

    /// The server's own file is lost, and another one may take its place.
    pub fn replace_file(&mut self, file: Option<Record>) {
        self.file = file;
        self.history = self.world.number();
        self.opened = None;
    }

    /// Starts anew, with what is on disk.
    pub fn restart(&mut self, preloads: bool) {
        self.wal.begin();
        self.memory = Memory::new(preloads.then(|| self.clock()));
        self.sessions = Default::default();
        self.life = self.world.number();
    }
}
