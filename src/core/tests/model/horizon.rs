//! Readers: they take a snapshot, announce the clock, and look at the others: what src/ledger/horizon.rs does.

use std::sync::atomic::{Ordering, fence};

use flake_core::horizon::prepared::{self, Prepared, Transactions};
use flake_core::horizon::{NONE, Snapshot};
use flake_core::resume::Grant;
use flake_core::timeline::MARGIN;

use crate::oracle::{Failure, time};
use crate::server::{Refused, Server};
use crate::story::{Play, tell};
use crate::transaction::Transaction;
use crate::wal::Change;

/// Which transactions a query sees as running.
#[derive(Clone, PartialEq)]
pub struct Snap {
    xmin: u64,
    xmax: u64,
    running: Vec<u32>,
}

/// A query that has announced the clock.
pub struct Asking {
    snapshot: Snap,
    announced: i64,
    /// How often horizons had been recalled before.
    recalls: u32,
    /// Whoever was warned since then was warned of this horizon, too.
    warnings: u32,
}

/// What a server knows of its transactions.
pub struct Seen {
    running: Vec<u64>,
    latest_ended: u64,
    oldest: u64,
}

impl Transactions for Seen {
    fn is_running(&self, xid: u64) -> bool {
        self.running.contains(&xid)
    }
    fn latest_ended(&self) -> u64 {
        self.latest_ended
    }
    fn oldest(&self) -> u64 {
        self.oldest
    }
}

fn running(server: &Server) -> Vec<u64> {
    let prepared = server.wal.prepared.iter().map(|(row, _)| row.xid);
    server.memory.running.iter().copied().chain(prepared).collect()
}

impl Seen {
    pub fn of(server: &Server) -> Self {
        let running = running(server);
        let sessions = || server.sessions.iter().flatten();
        let held = sessions().filter_map(|one| one.transaction.as_ref()?.snapshot.as_ref());
        let asking = sessions().filter_map(|one| one.asking.as_ref()).map(|asking| &asking.snapshot);
        let latest_ended = server.wal.latest_ended;
        let oldest = held.chain(asking).map(|snapshot| snapshot.xmin).chain(running.iter().copied());
        Self { latest_ended, oldest: oldest.fold(latest_ended + 1, u64::min), running }
    }
}

impl Snap {
    pub fn of(server: &Server) -> Self {
        let xmax = server.wal.latest_ended + 1;
        let running: Vec<u32> = running(server).into_iter().filter(|&xid| xid < xmax).map(|xid| xid as u32).collect();
        let xmin = running.iter().map(|&xid| xid.into()).fold(xmax, u64::min);
        Self { xmin, xmax, running }
    }

    fn transactions(&self) -> Snapshot<'_> {
        Snapshot { xmin: self.xmin, xmax: self.xmax, running: &self.running }
    }
}

impl Server {
    /// Announces the clock: no ID is made below any more.
    fn announce(&mut self, database: usize) -> Result<i64, Refused> {
        let known = self.memory.announced.load(Ordering::Acquire);
        let mut now = self.read_clock();
        let grant = self.grant(database, now, now.saturating_add(1), false)?;
        let window = self.memory.ledger().window();
        if let Grant::After(_) = grant {
            now = now.min(window.until);
        }
        self.bind(database, window.until.max(known).saturating_add(MARGIN));
        let before = self.memory.announced.fetch_max(now, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Ok(now.max(before))
    }

    /// Learns which transactions were prepared before the server started, and checks that the snapshot sees none as running
    /// that was committed before.
    fn learn_prepared(&mut self, snapshot: &Snap) -> Result<(), Refused> {
        let seen = Seen::of(self);
        let memory = &mut self.memory;
        if !memory.prepared_are_known {
            for &(row, bound) in self.wal.prepared.iter().filter(|(_, bound)| *bound != NONE) {
                let new = Prepared::new(row.xid, bound, row.database as u32 + 1);
                prepared::add(&mut memory.prepared, new, &seen);
            }
            memory.prepared_are_known = true;
        }
        let snapshot = snapshot.transactions();
        let has_committed = |xid: u64| self.wal.committed.iter().any(|row| row.xid == xid);
        let is_known = |xid| memory.prepared.iter().any(|one| one.xid() == Some(xid));
        let is_missed = |xid| !seen.is_running(xid) && has_committed(xid) && !is_known(xid);
        let is_any = snapshot.xmin < memory.first_xid && snapshot.running_before(memory.first_xid).any(is_missed);
        if is_any { Err(Refused::HorizonNotYet) } else { Ok(()) }
    }

    /// Returns the least bound of the transactions that have not ended for a snapshot.
    fn scan(&mut self, snapshot: &Snap, database: usize) -> Result<i64, Refused> {
        let snapshot = snapshot.transactions();
        if self.memory.unpublished > 0 || snapshot.xmin < self.memory.unpublished_until {
            return Err(Refused::Unpublished);
        }
        let database = database as u32 + 1;
        let of_slots = self.memory.slots.iter().map(|slot| slot.holds(&snapshot, database).unwrap());
        let least = of_slots.min().unwrap_or(NONE);
        Ok(least.min(prepared::holds(&self.memory.prepared, &snapshot, database)))
    }
}

impl Play {
    /// A session asks for a horizon, of a newer snapshot than its transaction's if that is the action of a foreign key. It may
    /// be stopped after it has announced the clock.
    pub fn ask(&mut self, at: usize, slot: usize, is_newer: bool, stops: bool) -> Result<Option<i64>, Failure> {
        if self.servers[at].recovers() {
            return Ok(None);
        }
        let mut session = self.take(at, slot)?;
        let server = &mut self.servers[at];
        let kept = session.transaction.as_ref().and_then(|transaction| transaction.snapshot.clone());
        let kept = kept.filter(|_| !is_newer);
        let snapshot = kept.unwrap_or_else(|| Snap::of(server));
        let recalls = server.memory.recalls;
        let announced = server.join(slot, &mut session).and_then(|()| {
            server.open(session.database)?;
            server.learn_prepared(&snapshot)?;
            server.announce(session.database)
        });
        let database = session.database;
        let asking = announced.map(|announced| Asking { snapshot, announced, recalls, warnings: server.wal.warnings });
        server.sessions[slot] = Some(session);
        match asking {
            Ok(asking) if stops => {
                let instant = time(asking.announced);
                tell!(
                    self,
                    "server {}: session {slot} asks for the horizon of database {database}, announces {instant}, and is stopped",
                    self.name(at)
                );
                self.servers[at].sessions[slot].as_mut().unwrap().asking = Some(asking);
                Ok(None)
            }
            Ok(asking) => self.look(at, slot, &asking),
            Err(_) => Ok(None),
        }
    }

    /// The rest of it. From now on, no row may appear below.
    pub fn look(&mut self, at: usize, slot: usize, asking: &Asking) -> Result<Option<i64>, Failure> {
        let name = self.name(at);
        let server = &mut self.servers[at];
        let database = server.sessions[slot].as_ref().unwrap().database;
        let Ok(least) = server.scan(&asking.snapshot, database) else { return Ok(None) };
        let mut horizon = least.min(asking.announced);
        let transaction = server.sessions[slot].as_mut().and_then(|session| session.transaction.as_mut());
        if let Some(Transaction { last, snapshot: Some(own), .. }) = transaction
            && *own == asking.snapshot
        {
            if last.0 == asking.recalls {
                horizon = horizon.max(last.1);
            }
            *last = (asking.recalls, horizon);
        }
        if server.wal.warnings != asking.warnings {
            return Ok(None);
        }
        server.write(Change::Promised { database, horizon });
        self.oracle.horizons += 1;
        let snapshot = asking.snapshot.transactions();
        let missed = |row: &&crate::oracle::Row| {
            row.database == database && row.earliest <= horizon && snapshot.is_running(row.xid)
        };
        let missed = server.wal.committed.iter().find(missed).copied();
        tell!(self, "server {name}: session {slot} gets the horizon {} of database {database}", time(horizon));
        match missed {
            None => Ok(Some(horizon)),
            Some(row) => Err(Failure(format!(
                "transaction {}, which that snapshot does not see, has committed a row whose tick ends at {}.",
                row.xid,
                time(row.earliest)
            ))),
        }
    }
}
