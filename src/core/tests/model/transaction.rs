//! Transactions: how they begin and end, and what is left of them: what src/ledger/transactions.rs does.

use flake_core::horizon::NONE;
use flake_core::horizon::prepared::{self, Prepared};

use crate::horizon::{Seen, Snap};
use crate::oracle::{Failure, Row};
use crate::server::Server;
use crate::story::{Play, tell};
use crate::wal::Change;

/// max_prepared_transactions
pub const MOST_PREPARED: usize = 2;

#[derive(Clone)]
pub struct Transaction {
    pub xid: Option<u64>,
    pub writes: bool,
    /// From this instant on, readings of the clock are admitted.
    pub admitted: i64,
    /// When the earliest tick of its IDs ends.
    pub earliest: i64,
    /// Of a transaction that has one snapshot; and its last horizon, after so many recalls.
    pub snapshot: Option<Snap>,
    pub last: (u32, i64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum How {
    Commit,
    RollBack,
    Prepare,
}

impl Transaction {
    pub fn new(server: &mut Server) -> Self {
        Self {
            xid: None,
            writes: !server.recovers(),
            admitted: NONE,
            earliest: i64::MAX,
            snapshot: None,
            last: (0, i64::MIN),
        }
    }

    /// Gives it a number, as the first row that it writes does.
    pub fn assign(&mut self, server: &mut Server) {
        if self.xid.is_none() {
            self.xid = Some(server.wal.next_xid);
            server.memory.running.push(server.wal.next_xid);
            server.wal.next_xid += 1;
        }
    }
}

impl Server {
    /// Notes that a transaction has ended; new snapshots see that.
    pub fn ended(&mut self, xid: u64) {
        self.memory.running.retain(|&running| running != xid);
        self.wal.ended(xid);
    }

    /// What a session does when it is about to prepare its transaction. Returns the bound; none if PostgreSQL has no room for it.
    fn prepare(&mut self, slot: usize, xid: u64, database: usize) -> Option<i64> {
        let session = self.sessions[slot].as_ref()?;
        let bound = session.transactions(&self.memory.slots, slot).bound();
        if bound != NONE {
            let seen = Seen::of(self);
            prepared::add(&mut self.memory.prepared, Prepared::new(xid, bound, database as u32 + 1), &seen);
        }
        (self.wal.prepared.len() < MOST_PREPARED).then_some(bound)
    }
}

impl Play {
    /// A session begins a transaction, which may write at once, or have one snapshot.
    pub fn begin(&mut self, at: usize, slot: usize, writes: bool, has_one_snapshot: bool) -> Result<(), Failure> {
        let mut session = self.take(at, slot)?;
        let server = &mut self.servers[at];
        if session.transaction.is_none() {
            let mut transaction = Transaction::new(server);
            if writes && transaction.writes {
                transaction.assign(server);
            }
            if has_one_snapshot && transaction.writes {
                transaction.snapshot = Some(Snap::of(server));
            }
            let with = transaction.xid.map_or(String::new(), |xid| format!(" with the number {xid}"));
            let one = if transaction.snapshot.is_some() { " that keeps its snapshot" } else { "" };
            session.transaction = Some(transaction);
            tell!(self, "server {}: session {slot} begins a transaction{one}{with}", self.name(at));
        }
        self.servers[at].sessions[slot] = Some(session);
        Ok(())
    }

    /// The transaction of a session ends. The session may be stopped before it says so.
    pub fn end(&mut self, at: usize, slot: usize, mut how: How, stops: bool) -> Result<(), Failure> {
        self.finish(at, slot)?;
        let name = self.name(at);
        let server = &mut self.servers[at];
        let Some(session) = &mut server.sessions[slot] else { return Ok(()) };
        let database = session.database;
        let Some(transaction) = session.transaction.take() else { return Ok(()) };
        let row = transaction.xid.map(|xid| Row { xid, database, earliest: transaction.earliest });
        if how == How::Prepare {
            match row.and_then(|row| Some((row, server.prepare(slot, row.xid, database)?))) {
                Some((row, bound)) => {
                    server.write(Change::Prepared { row, bound });
                    server.memory.running.retain(|&running| running != row.xid);
                }
                None => how = How::RollBack,
            }
        }
        match (how, row) {
            (How::Commit, Some(row)) => {
                server.write(Change::Committed(row));
                server.ended(row.xid);
            }
            (How::RollBack, Some(row)) => server.ended(row.xid),
            _ => {}
        }
        let committed = row.map(|row| row.xid).filter(|_| how == How::Commit);
        server.sessions[slot].as_mut().unwrap().unsaid = Some(committed);
        if let Some(Row { xid, .. }) = row {
            let what = match how {
                How::Commit => "commits",
                How::RollBack => "rolls back",
                How::Prepare => "prepares",
            };
            let stopped = if stops { ", and is stopped before it says so to others" } else { "" };
            tell!(self, "server {name}: session {slot} {what} transaction {xid}{stopped}");
        }
        if let Some(row) = row.filter(|_| how == How::Commit) {
            self.oracle.committed(&self.servers[at], row)?;
        }
        if stops { Ok(()) } else { self.finish(at, slot) }
    }

    /// Somebody ends a prepared transaction.
    pub fn end_prepared(&mut self, at: usize, which: usize, commits: bool) -> Result<(), Failure> {
        let name = self.name(at);
        let server = &mut self.servers[at];
        if server.recovers() || server.wal.prepared.is_empty() {
            return Ok(());
        }
        let (row, _) = server.wal.prepared[which % server.wal.prepared.len()];
        server.write(Change::EndedPrepared { xid: row.xid, commits });
        let what = if commits { "committed" } else { "rolled back" };
        tell!(self, "server {name}: the prepared transaction {} is {what}", row.xid);
        if commits { self.oracle.committed(&self.servers[at], row) } else { Ok(()) }
    }

    /// A session that was stopped does what it was about to do.
    pub fn finish(&mut self, at: usize, slot: usize) -> Result<(), Failure> {
        let server = &mut self.servers[at];
        let Some(session) = &mut server.sessions[slot] else { return Ok(()) };
        if let Some(committed) = session.unsaid.take()
            && session.has_joined
        {
            session.transactions(&server.memory.slots, slot).end(committed);
        }
        match session.asking.take() {
            Some(asking) => self.look(at, slot, &asking).map(|_| ()),
            None => Ok(()),
        }
    }
}
