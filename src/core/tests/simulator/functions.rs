//! Calls that make no IDs: DROP and CREATE EXTENSION, and the functions of operators and readers.

use std::cell::Cell;
use std::sync::Arc;

use flake_core::ledger::durable::page::record_mark;
use flake_core::ledger::host::Page;
use flake_core::ledger::time::operator;
use flake_core::watermark::NONE;

use crate::host::Hosted;
use crate::machine::{PROCS, Promise};
use crate::oracle::time;
use crate::play::{Play, tell};

impl Play {
    /// A session drops and creates the extension in a transaction, or creates it if it does not exist.
    pub fn recreate(self: &Arc<Self>, at: usize, proc: usize, stop: Option<u16>) {
        {
            let mut world = self.world();
            let machine = &mut world.machines[at];
            let database = machine.database[proc];
            let exists = machine.wal.databases[database].0.is_some();
            let is_known = !exists || machine.has_looked[database];
            if !machine.is_up || machine.recovers() || machine.recreating.is_some() || !is_known {
                return;
            }
            machine.recreating = Some((proc, database));
        }
        self.begin_transaction(at, proc);
        let result = self.act((at, proc), stop, |host, session| {
            if let Some(transaction) = &mut session.transaction {
                transaction.is_creator = true;
            }
            host.private = Some(Arc::new(Page::default()));
            record_mark(host)
        });
        let mut world = self.world();
        if result.is_none() {
            world.machines[at].recreating = None;
        }
        tell!(world, "server {}: session {proc} drops and creates the extension: {result:?}", world.name(at));
    }

    /// A session accepts the clock.
    pub fn accept(self: &Arc<Self>, at: usize, proc: usize, stop: Option<u16>) {
        if !self.can_operate(at, proc) {
            return;
        }
        let from = Cell::new(0);
        let result = self.act((at, proc), stop, |host, _| {
            let before = self.setbacks(at);
            let accepted = operator::accept(host)?;
            from.set(accepted.from);
            self.starts_at(host, (before.0, before.1 + u64::from(accepted.is_new)), accepted.from);
            Ok(())
        });
        let mut world = self.world();
        let (name, from) = (world.name(at), time(from.get()));
        tell!(world, "server {name}: session {proc} accepts the clock: {result:?}, IDs from {from} on");
    }

    /// A session calls flake_start_above.
    pub fn start_above(self: &Arc<Self>, at: usize, proc: usize, ahead: i64, stop: Option<u16>) {
        if !self.can_operate(at, proc) {
            return;
        }
        let instant = self.time() + self.world().machines[at].offset() + ahead;
        let result = self.act((at, proc), stop, |host, session| {
            let before = self.setbacks(at);
            let (from, _) = operator::start_above(host, instant)?;
            self.starts_at(host, before, from);
            let waits_for = waits_for(host);
            let mut world = self.world();
            let machine = &mut world.machines[at];
            let record = machine.wal.flushed;
            let is_private = session.transaction.as_ref().is_some_and(|transaction| transaction.is_creator);
            let of_database = (!is_private).then_some(Some(session.database));
            for database in [None].into_iter().chain(of_database) {
                machine.promises.push(Promise { instant, database, record, waits_for: waits_for.clone() });
            }
            Ok(())
        });
        let mut world = self.world();
        tell!(world, "server {}: session {proc} has IDs start above {}: {result:?}", world.name(at), time(instant));
    }

    /// How often the clock was set back, and how often it was accepted.
    fn setbacks(&self, at: usize) -> (u64, u64) {
        let world = self.world();
        (world.machines[at].setbacks, world.acceptances(at))
    }

    /// Remembers from when on a function has said that IDs are made, unless that has changed while it ran, or time is any number. A
    /// session that is making an ID may have read the clock before.
    fn starts_at(&self, host: &Hosted, expected: (u64, u64), instant: i64) {
        if !self.has_any_time() && self.setbacks(host.at) == expected {
            let mut waits_for = waits_for(host);
            let mut world = self.world();
            waits_for.extend(world.running.iter().filter(|one| one.at == host.at).map(|one| one.proc));
            waits_for.retain(|&proc| proc != host.proc);
            let promise = Promise { instant, database: None, record: 0, waits_for };
            world.machines[host.at].start = Some((promise, expected.1));
        }
    }

    /// Whether a session can read, which it can on a standby too.
    pub fn can_read(&self, at: usize, proc: usize) -> bool {
        let world = self.world();
        let machine = &world.machines[at];
        machine.is_up && machine.wal.databases[machine.database[proc]].0.is_some()
    }

    /// Whether a session can call an operator's function, in a transaction of its own.
    pub fn can_operate(&self, at: usize, proc: usize) -> bool {
        let world = self.world();
        let machine = &world.machines[at];
        let exists = machine.wal.databases[machine.database[proc]].0.is_some();
        machine.is_up && !machine.recovers() && exists
    }
}

/// Returns the procs that an operator's function waits for, as in the product. A session that has made no ID in its transaction
/// sees the new era.
fn waits_for(host: &Hosted) -> Vec<usize> {
    let is_busy = |other: &usize| host.memory.transactions[*other].bound() != NONE;
    (0..PROCS).filter(|other| *other != host.proc && is_busy(other)).collect()
}
