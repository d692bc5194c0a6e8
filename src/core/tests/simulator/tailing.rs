//! Sessions that write rows, and sessions that read them by watermarks.

use std::cell::Cell;
use std::sync::Arc;

use flake_core::ledger::host::{Host, Server};
use flake_core::ledger::time::begin;
use flake_core::watermark::{ask, published};

use crate::host::{Hosted, Trouble};
use crate::oracle::time;
use crate::play::{Play, tell};
use crate::procs::Look;
use crate::session::Session;

impl Play {
    /// A session begins a transaction whose statements share one snapshot.
    pub fn look(&self, at: usize, proc: usize) {
        if !self.can_read(at, proc) || !self.is_outside(at, proc) {
            return;
        }
        self.begin_transaction(at, proc);
        let mut world = self.world();
        let order = world.moment();
        let machine = &mut world.machines[at];
        let look = machine.look(proc, None, order, true);
        if let Some(transaction) = machine.sessions[proc].as_mut().and_then(|session| session.transaction.as_mut()) {
            transaction.look = Some(look);
        }
        tell!(world, "server {}: session {proc} takes the snapshot that its transaction reads by", world.name(at));
    }

    /// Whether a session is outside of a transaction.
    pub fn is_outside(&self, at: usize, proc: usize) -> bool {
        self.world().machines[at].sessions[proc].as_ref().is_none_or(|session| session.transaction.is_none())
    }

    /// A session's transaction writes something without an ID.
    pub fn write(self: &Arc<Self>, at: usize, proc: usize) {
        if self.can_operate(at, proc) && !self.is_outside(at, proc) {
            self.act((at, proc), None, |host, session| {
                self.number(host, session);
                Ok(())
            });
            let mut world = self.world();
            tell!(world, "server {}: session {proc} writes", world.name(at));
        }
    }

    /// Assigns an ID to the transaction, because it writes.
    pub fn number(&self, host: &Hosted, session: &mut Session) {
        let Some(transaction) = &mut session.transaction else { return };
        if transaction.xid.is_none() && !transaction.is_read_only {
            host.step("is about to write");
            transaction.xid = Some(self.world().machines[host.at].procs.assign());
            host.step("writes");
        }
    }

    /// Asks for a watermark. Returns it if the session gets that far.
    pub fn ask(self: &Arc<Self>, at: usize, proc: usize, stop: Option<u16>) -> Option<i64> {
        if !self.can_read(at, proc) {
            return None;
        }
        let watermark = Cell::new(None);
        let result = self.act((at, proc), stop, |host, session| {
            let look = self.statement(host, session);
            let asked = self.answer(host, session, &look);
            let is_kept = session.transaction.as_ref().is_some_and(|transaction| transaction.look.is_some());
            host.step("ends its statement");
            if !is_kept {
                self.world().machines[at].procs.oldest[proc] = u64::MAX;
            }
            watermark.set(Some(asked?));
            Ok(())
        });
        let mut world = self.world();
        let how = watermark.get().map_or_else(|| format!("{result:?}"), time);
        tell!(world, "server {}: session {proc} asks for a watermark: {how}", world.name(at));
        watermark.get()
    }

    /// The snapshot of a statement.
    fn statement(&self, host: &Hosted, session: &Session) -> Look {
        host.step("begins a statement");
        let transaction = session.transaction.as_ref();
        if let Some(look) = transaction.and_then(|transaction| transaction.look.clone()) {
            return look;
        }
        let mut world = self.world();
        let order = world.moment();
        let own = transaction.and_then(|transaction| transaction.xid);
        world.machines[host.at].look(host.proc, own, order, false)
    }

    /// Publishes a watermark for standbys.
    pub fn publish(self: &Arc<Self>, at: usize, proc: usize, stop: Option<u16>) {
        if !self.can_operate(at, proc) {
            return;
        }
        let result = self.act((at, proc), stop, |host, session| {
            self.join(host, session)?;
            self.publish_in(host, session)?;
            Ok(())
        });
        let mut world = self.world();
        tell!(world, "server {}: session {proc} publishes the watermark: {result:?}", world.name(at));
    }

    /// Publishing takes a snapshot of its own, whatever snapshot the transaction uses.
    fn publish_in(&self, host: &mut Hosted, session: &mut Session) -> Result<i64, Trouble> {
        loop {
            host.step("is about to publish");
            host.xid = host.xid.or_else(|| session.transaction.as_ref()?.xid);
            let look = {
                let mut world = self.world();
                let order = world.moment();
                world.machines[host.at].look(host.proc, host.xid, order, false)
            };
            let watermark = published::publish(host, &session.past, &look);
            if let Some(transaction) = &mut session.transaction {
                transaction.xid = host.xid;
            }
            if let Some(watermark) = watermark? {
                return Ok(watermark);
            }
        }
    }

    /// The watermark for a snapshot from when the server was a standby.
    fn replayed(&self, host: &mut Hosted, database: usize, look: &Look, replayed: usize) -> Result<i64, Trouble> {
        host.step("has its snapshot on a standby");
        let has_looked_in = host.has_looked_in;
        let acceptances = Cell::new(0);
        let read = || {
            let page = host.page()?;
            acceptances.set(page.record()?.reserved.acceptances);
            Ok(page)
        };
        let watermark = published::replayed::<Trouble>(look, read)?.ok_or(Trouble::NothingPublished)?;
        // The server reads nothing else from the page.
        host.has_looked_in = has_looked_in;
        self.world().returned_replayed((host.at, host.proc), database, (watermark, acceptances.get()), replayed);
        Ok(watermark)
    }

    fn answer(&self, host: &mut Hosted, session: &mut Session, look: &Look) -> Result<i64, Trouble> {
        if let Some(replayed) = look.replayed {
            return self.replayed(host, session.database, look, replayed);
        }
        host.step("has its snapshot");
        self.join(host, session)?;
        let watermark = ask::ask(host, &session.past, look)?;
        let (era, acceptances) = (host.memory.shared.era(), self.world().acceptances(host.at));
        host.step("has a watermark");
        let again = ask::ask(host, &session.past, look)?;
        let mut world = self.world();
        if again != watermark {
            world.fail(format!("a snapshot has two watermarks: {} and {}", time(watermark), time(again)));
        }
        let transaction = session.transaction.get_or_insert_default();
        if transaction.look.is_some() {
            let last = transaction.last.replace((era, watermark));
            if last.is_some_and(|(before, last)| before == era && watermark < last) {
                world.fail(format!("the watermark of one snapshot goes back to {}", time(watermark)));
            }
        }
        let machine = &world.machines[host.at];
        let record = if host.private.is_some() { usize::MAX } else { machine.wal.flushed };
        let look = (look.seen, look.order);
        world.returned((host.at, host.proc), session.database, (watermark, acceptances), look, record);
        Ok(watermark)
    }

    /// Counts the session as a user of the ledger.
    pub fn join(&self, host: &mut Hosted, session: &mut Session) -> Result<(), Trouble> {
        if !session.has_joined {
            begin::join(host)?;
            session.past.take_part(host);
            session.has_joined = true;
        }
        Ok(())
    }

    /// A session inserts a row with an ID of another session, whose tick of a microsecond was some time ago.
    pub fn cover(self: &Arc<Self>, at: usize, proc: usize, ago: i64, stop: Option<u16>) {
        if !self.can_operate(at, proc) {
            return;
        }
        let (instant, refused) = (Cell::new(0), Cell::new(None));
        let result = self.act((at, proc), stop, |host, session| {
            host.interruptible();
            self.join(host, session)?;
            instant.set(host.time(host.memory.shared.era(), false) - ago);
            match session.past.cover(host, instant.get())? {
                None => {
                    host.step("has covered an ID");
                    self.insert(host, session, instant.get() + 1, None);
                }
                Some(announced) => refused.set(Some(announced)),
            }
            Ok(())
        });
        let mut world = self.world();
        let (name, instant) = (world.name(at), time(instant.get()));
        let how = refused.get().map_or(String::new(), |until| format!(", but it is too late: {}", time(until)));
        tell!(world, "server {name}: session {proc} covers an ID of {instant}: {result:?}{how}");
    }

    /// A transaction inserts a row with an ID whose tick ends at an instant.
    pub fn insert(&self, host: &Hosted, session: &mut Session, end: i64, made: Option<usize>) {
        let database = session.database;
        if let Some(transaction) = &mut session.transaction
            && !transaction.is_read_only
        {
            let mut world = self.world();
            let rows = world.insert((host.at, host.proc), transaction.rows, database, end);
            world.rows[rows].made.extend(made);
            transaction.rows = Some(rows);
        }
        self.number(host, session);
    }

    /// A session commits many transactions in a row, each with an ID.
    pub fn churn(self: &Arc<Self>, at: usize, proc: usize, count: usize) {
        for _ in 0..count {
            self.make((at, proc), (MICROSECOND, 1), false, None);
            // Transactions whose bounds are less than a millisecond apart are remembered as one.
            self.pass(1500);
        }
    }
}

/// The kind whose tick is a microsecond.
pub const MICROSECOND: usize = 3;
