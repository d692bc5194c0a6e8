//! How transactions end, in PostgreSQL's order of steps, because other sessions may see each step.

use std::sync::Arc;

use flake_core::watermark::NONE;

use crate::host::{Hosted, Trouble};
use crate::layouts::Own;
use crate::play::{Play, tell};
use crate::procs::{MOST_PREPARED, PreparedOne};
use crate::session::Session;
use crate::wal::Record;

impl Play {
    /// Ends a session's transaction.
    pub fn end_transaction(&self, host: &Hosted, session: &mut Session, commits: bool) {
        let Some(mut transaction) = session.transaction.take() else { return };
        transaction.xid = transaction.xid.or(host.xid);
        let at = host.at;
        let commits = commits && !transaction.is_read_only && (transaction.is_creator || transaction.xid.is_some());
        if commits {
            host.step("is about to commit");
            let xid = transaction.xid.unwrap_or(0);
            let private = transaction.private.or_else(|| host.private.clone());
            let record = {
                let time = self.time();
                let machine = &mut self.world().machines[at];
                if transaction.is_creator {
                    machine.wal.write(time, Record::Extension(session.database, private));
                }
                machine.wal.write(time, Record::Commit(xid, transaction.rows))
            };
            host.step("flushes its commit");
            let mut world = self.world();
            world.machines[at].wal.flush(record);
            if let Some(rows) = transaction.rows {
                world.have_committed(rows, record);
            }
        }
        if let Some(xid) = transaction.xid.filter(|_| !commits) {
            host.step("is about to roll back");
            self.world().machines[at].wal.write(self.time(), Record::Abort(xid));
        }
        host.step("ends its transaction");
        {
            let mut world = self.world();
            let machine = &mut world.machines[at];
            if let Some(xid) = transaction.xid {
                machine.procs.ended(xid);
                machine.procs.carried.retain(|one| one.0 != xid);
            }
            machine.procs.oldest[host.proc] = u64::MAX;
            if transaction.is_creator {
                machine.recreating = None;
            }
            if let Some(rows) = transaction.rows.filter(|_| commits) {
                world.become_visible(at, rows);
                world.come_after(at, rows);
            }
        }
        session.past.end(host, transaction.xid.filter(|_| commits));
        if !commits {
            session.past.invalidate_page();
            session.own.iter_mut().flatten().for_each(Own::invalidate_page);
        }
        self.world().machines[at].waits_no_more_for(host.proc);
    }

    /// A session ends its transaction.
    pub fn commit_or_roll_back(self: &Arc<Self>, at: usize, proc: usize, commits: bool, stop: Option<u16>) {
        if self.is_outside(at, proc) {
            return;
        }
        self.act((at, proc), stop, |host, session| {
            self.end_transaction(host, session, commits);
            Ok(())
        });
        let mut world = self.world();
        let how = if commits { "commits" } else { "rolls back" };
        tell!(world, "server {}: session {proc} {how}", world.name(at));
    }

    /// A session prepares its transaction.
    pub fn prepare(self: &Arc<Self>, at: usize, proc: usize, stop: Option<u16>) {
        let is_possible = {
            let world = self.world();
            let transaction = world.machines[at].sessions[proc].as_ref().and_then(|one| one.transaction.as_ref());
            transaction.is_some_and(|one| !one.is_creator && !one.is_read_only && one.rows.is_some())
        };
        if !is_possible {
            return;
        }
        let result = self.act((at, proc), stop, |host, session| self.prepare_in(host, session));
        let mut world = self.world();
        tell!(world, "server {}: session {proc} prepares its transaction: {result:?}", world.name(at));
    }

    fn prepare_in(&self, host: &Hosted, session: &mut Session) -> Result<(), Trouble> {
        let at = host.at;
        let Some(transaction) = &session.transaction else { return Ok(()) };
        let (Some(xid), Some(row)) = (transaction.xid, transaction.rows) else { return Ok(()) };
        let database = session.database;
        host.interruptible();
        session.past.prepare(host, Some(xid));
        host.step("is about to prepare");
        {
            let procs = &mut self.world().machines[at].procs;
            if procs.prepared.len() >= MOST_PREPARED {
                return Err(Trouble::NoRoom);
            }
            procs.prepared.push(PreparedOne { xid, row, database, is_valid: false, is_locked: false });
        }
        host.step("writes what it prepares");
        let record = {
            let time = self.time();
            let machine = &mut self.world().machines[at];
            let bound = machine.procs.carried.iter().find(|one| one.0 == xid).map_or(NONE, |one| one.1);
            machine.wal.write(time, Record::Prepare { xid, row, database, bound })
        };
        host.step("flushes what it prepares");
        {
            let machine = &mut self.world().machines[at];
            machine.wal.flush(record);
            machine.procs.prepared.iter_mut().filter(|one| one.xid == xid).for_each(|one| one.is_valid = true);
        }
        host.step("leaves what it has prepared");
        self.world().machines[at].procs.oldest[host.proc] = u64::MAX;
        session.past.end(host, None);
        session.transaction = None;
        self.world().machines[at].waits_no_more_for(host.proc);
        Ok(())
    }

    /// A session ends a transaction that another one has prepared.
    pub fn finish(self: &Arc<Self>, at: usize, proc: usize, which: usize, commits: bool, stop: Option<u16>) {
        if !self.can_operate(at, proc) || !self.is_outside(at, proc) {
            return;
        }
        let result = self.act((at, proc), stop, |host, session| {
            self.finish_in(host, session.database, which, commits);
            Ok(())
        });
        let mut world = self.world();
        let how = if commits { "commits" } else { "rolls back" };
        tell!(world, "server {}: session {proc} {how} what was prepared: {result:?}", world.name(at));
    }

    fn finish_in(&self, host: &Hosted, database: usize, which: usize, commits: bool) {
        let at = host.at;
        host.interruptible();
        let one = {
            let procs = &mut self.world().machines[at].procs;
            let is_free = |one: &&mut PreparedOne| one.is_valid && !one.is_locked && one.database == database;
            let mut free: Vec<_> = procs.prepared.iter_mut().filter(is_free).collect();
            let count = free.len().max(1);
            let Some(one) = free.get_mut(which % count) else { return };
            one.is_locked = true;
            **one
        };
        host.step("is about to end what was prepared");
        let record = {
            let time = self.time();
            let wal = &mut self.world().machines[at].wal;
            wal.write(time, if commits { Record::Commit(one.xid, Some(one.row)) } else { Record::Abort(one.xid) })
        };
        host.step("flushes that it ends");
        {
            let mut world = self.world();
            world.machines[at].wal.flush(record);
            if commits {
                world.have_committed(one.row, record);
            }
        }
        host.step("ends what was prepared");
        {
            let mut world = self.world();
            world.machines[at].procs.ended(one.xid);
            if commits {
                world.become_visible(at, one.row);
                world.come_after(at, one.row);
            }
        }
        host.step("gives up the locks of what was prepared");
        self.world().machines[at].procs.carried.retain(|carried| carried.0 != one.xid);
        host.step("forgets what was prepared");
        self.world().machines[at].procs.prepared.retain(|prepared| prepared.xid != one.xid);
    }
}
