//! Sessions: they join, make IDs in transactions, and leave: what src/session and src/ledger/membership.rs do.

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;

use flake_core::horizon::SlotTransactions;
use flake_core::record::ExitNote;
use flake_core::{FinalProgress, Slot};

use crate::access::Access;
use crate::horizon::Asking;
use crate::layouts::{self, KINDS, Own};
use crate::oracle::{Failure, time};
use crate::server::{Refused, SLOTS, Server};
use crate::story::{Play, tell};
use crate::transaction::Transaction;
use crate::wal::DATABASES;

pub struct Session {
    pub database: usize,
    /// None where there is memory for its slot.
    pub unpublished: Option<Box<SlotTransactions>>,
    pub has_joined: bool,
    joined_in_recovery: bool,
    own: [Option<Own>; KINDS],
    pub granted_in_recovery: [bool; KINDS],
    pub transaction: Option<Transaction>,
    /// Its last transaction has ended, and it was stopped before it could say so: its number if it has committed.
    pub unsaid: Option<Option<u64>>,
    /// It has announced the clock, and was stopped before it looked at the others.
    pub asking: Option<Asking>,
}

impl Session {
    pub fn new(database: usize, is_traced: bool) -> Self {
        Self {
            database,
            unpublished: (!is_traced).then(Box::default),
            has_joined: false,
            joined_in_recovery: false,
            own: Default::default(),
            granted_in_recovery: [false; KINDS],
            transaction: None,
            unsaid: None,
            asking: None,
        }
    }

    pub fn transactions<'a>(&'a self, slots: &'a [SlotTransactions; SLOTS], slot: usize) -> &'a SlotTransactions {
        self.unpublished.as_deref().unwrap_or(&slots[slot])
    }
}

impl Server {
    pub fn join(&mut self, slot: usize, session: &mut Session) -> Result<(), Refused> {
        if session.has_joined {
            return Ok(());
        }
        self.open(session.database)?;
        if self.file.as_ref().is_some_and(|record| record.exit_note.is_some()) {
            let (ledger, owner) = self.memory.ledger.unwrap();
            self.store(&ledger, owner, None)?;
        }
        (session.has_joined, session.joined_in_recovery) = (true, self.recovers());
        self.memory.joined += 1;
        if session.unpublished.is_some() {
            self.memory.unpublished += 1;
        }
        session.transactions(&self.memory.slots, slot).begin(session.database as u32 + 1);
        Ok(())
    }

    /// In a session that joined in recovery, has the ledger opened again once the server has been promoted.
    fn notice_promotion(&mut self, session: &mut Session) -> Result<(), Refused> {
        if session.joined_in_recovery && !self.recovers() {
            self.open(session.database)?;
            session.joined_in_recovery = false;
        }
        Ok(())
    }

    /// The session leaves its progress; none if it is in the middle of making an ID.
    pub fn leave(&mut self, slot: usize, session: &Session, in_order: bool) {
        if !session.has_joined {
            return;
        }
        let (clock, next_xid) = (self.clock(), self.wal.next_xid);
        let memory = &mut self.memory;
        let ledger = *memory.ledger();
        let progress: Vec<FinalProgress> = session.own.iter().flatten().map(Own::final_progress).collect();
        let of_this_era = || progress.iter().filter(|last| in_order && last.era == ledger.era());
        let free_from = match in_order {
            true => of_this_era().map(|last| last.progress.free_from()).max().unwrap_or(i64::MIN),
            false => ledger.granted_until(),
        };
        if session.unpublished.is_some() {
            memory.unstored_floor = memory.unstored_floor.max(free_from);
            memory.unpublished_until = memory.unpublished_until.max(next_xid);
            memory.unpublished -= 1;
        } else if in_order {
            progress.iter().for_each(|last| memory.progress[slot].store(last));
        } else {
            memory.progress[slot].abandon(ledger.era(), free_from);
        }
        let present = of_this_era().map(|last| last.progress.start).max().unwrap_or(i64::MIN);
        if present <= clock {
            memory.last_seen = memory.last_seen.max(present);
        }
        memory.free_from = memory.free_from.max(free_from);
        memory.joined -= 1;
        if memory.joined == 0 {
            let announced = memory.announced.load(Ordering::Acquire);
            let free_from = ledger.floor().max(memory.free_from).max(memory.unstored_floor).max(announced);
            let owner = memory.ledger.unwrap().1;
            let note = ExitNote { boot_id: self.boot_id(), free_from };
            let _ = self.store(&ledger, owner, Some(note));
        }
    }
}

impl Play {
    /// Connects a session, if there is none in the slot.
    pub fn connect(&mut self, at: usize, slot: usize, database: usize, is_traced: bool) {
        let server = &mut self.servers[at];
        if server.sessions[slot].is_none() {
            server.sessions[slot] = Some(Box::new(Session::new(database, is_traced)));
            let memory = if is_traced { "" } else { ", which finds no memory for its slot" };
            tell!(self, "server {}: session {slot} connects to database {database}{memory}", self.name(at));
        }
    }

    /// Takes the session of a slot out of its server, after it has done what it was about to do.
    pub fn take(&mut self, at: usize, slot: usize) -> Result<Box<Session>, Failure> {
        if self.servers[at].sessions[slot].is_none() {
            self.servers[at].sessions[slot] = Some(Box::new(Session::new(slot % DATABASES, true)));
        }
        self.finish(at, slot)?;
        Ok(self.servers[at].sessions[slot].take().unwrap())
    }

    /// A session makes up to `count` IDs; it stops early where it would have to wait. Returns how many it has made.
    pub fn make(&mut self, at: usize, slot: usize, kind: usize, count: usize) -> Result<usize, Failure> {
        let mut session = self.take(at, slot)?;
        let is_single = session.transaction.is_none();
        let mut transaction = session.transaction.take().unwrap_or_else(|| Transaction::new(&mut self.servers[at]));
        let made = self.make_in(at, slot, &mut session, &mut transaction, (kind, count))?;
        let clock = time(self.servers[at].clock());
        let (name, kind) = (self.name(at), layouts::name(kind));
        tell!(self, "server {name}: session {slot} makes {made} of {count} IDs of {kind} until its clock says {clock}");
        session.transaction = Some(transaction);
        let server = &mut self.servers[at];
        server.sessions[slot] = Some(session);
        if is_single {
            self.end(at, slot, crate::transaction::How::Commit, false)?;
        }
        Ok(made)
    }

    fn make_in(
        &mut self,
        at: usize,
        slot: usize,
        session: &mut Session,
        transaction: &mut Transaction,
        (kind, count): (usize, usize),
    ) -> Result<usize, Failure> {
        let server = &mut self.servers[at];
        if server.recovers() && !server.allow_in_recovery {
            return Ok(0);
        }
        if server.join(slot, session).and_then(|()| server.notice_promotion(session)).is_err() {
            return Ok(0);
        }
        let (node, number) = (server.node, Slot::new(slot as u32, server.slots).unwrap());
        let (database, is_traced) = (session.database, session.unpublished.is_none());
        let granted_in_recovery = Cell::new(None);
        let access = Access { server: RefCell::new(server), slot, database, is_traced, granted_in_recovery };
        let mut made = 0;
        while made < count {
            let mut own = session.own[kind].take().unwrap_or_else(|| Own::begin(&access, kind, node, number));
            let next = own.next(&access, kind, || {
                let server = &mut **access.server.borrow_mut();
                let now = server.read_clock();
                if now >= transaction.admitted {
                    return (now, Ok(()));
                }
                let memory = &server.memory;
                let admitted = session.transactions(&memory.slots, slot).admit(&memory.announced, now);
                if admitted.is_ok() {
                    transaction.admitted = now;
                }
                (now, admitted)
            });
            session.own[kind] = Some(own);
            if let Some(granted) = access.granted_in_recovery.take() {
                session.granted_in_recovery[kind] = granted;
            }
            let Some(next) = next else { break };
            made += 1;
            transaction.earliest = transaction.earliest.min(next.start + next.length);
            let server = &mut **access.server.borrow_mut();
            server.latest[database] = server.latest[database].max(next.start);
            self.oracle.made(&self.world, server, (slot, session), kind, next)?;
        }
        if made > 0 && transaction.writes {
            transaction.assign(&mut self.servers[at]);
        }
        Ok(made)
    }

    /// The session of a slot exits, in order or in the middle of making an ID.
    pub fn exit(&mut self, at: usize, slot: usize, in_order: bool) -> Result<(), Failure> {
        if self.servers[at].sessions[slot].is_none() {
            return Ok(());
        }
        self.end(at, slot, crate::transaction::How::RollBack, false)?;
        let session = self.servers[at].sessions[slot].take().unwrap();
        self.servers[at].leave(slot, &session, in_order);
        let way = if in_order { "" } else { " in the middle of making an ID" };
        tell!(self, "server {}: session {slot} exits{way}", self.name(at));
        Ok(())
    }
}
