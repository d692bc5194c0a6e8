//! A session of a simulated server as the host of watermarks.

use flake_core::watermark::ProcTransactions;
use flake_core::watermark::host::{PreparedUse, Refusal, WatermarkHost};
use flake_core::watermark::prepared::{Prepared, Transactions};

use crate::host::{Hosted, Trouble};
use crate::play::Play;
use crate::procs::MOST_PREPARED;
use crate::wal::Record;

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        Self::NoWatermark(refusal)
    }
}

/// The transactions of a server.
struct Known<'a>(&'a Play, usize);

impl Transactions for Known<'_> {
    fn is_running(&self, xid: u64) -> bool {
        self.0.world().machines[self.1].procs.is_running(xid)
    }

    fn latest_ended(&self) -> u64 {
        self.0.world().machines[self.1].procs.latest_ended()
    }

    fn oldest_xmin(&self) -> u64 {
        self.0.world().machines[self.1].procs.oldest_xmin()
    }
}

impl WatermarkHost for Hosted {
    fn database(&self) -> u32 {
        self.database as u32 + 1
    }

    fn own(&self) -> &ProcTransactions {
        &self.memory.transactions[self.proc]
    }

    fn procs(&self) -> impl Iterator<Item = &ProcTransactions> {
        self.memory.transactions.iter().inspect(|_| self.step("reads what a proc holds"))
    }

    fn nap(&self) {
        self.step("naps");
    }

    fn most_prepared(&self) -> usize {
        MOST_PREPARED
    }

    fn prepared_use(&self) -> &PreparedUse {
        &self.memory.prepared_use
    }

    fn prepared<R>(&self, act: impl FnOnce(&mut [Prepared]) -> R) -> R {
        self.step("takes the lock of the prepared transactions");
        act(&mut *self.memory.prepared.lock().unwrap())
    }

    fn known(&self) -> impl Transactions {
        Known(&self.play, self.at)
    }

    fn has_committed(&self, xid: u64) -> bool {
        self.step("looks into the commit log");
        let is_its = |record: &(i64, Record)| matches!(record.1, Record::Commit(committed, _) if committed == xid);
        self.play.world().machines[self.at].wal.records.iter().any(is_its)
    }

    fn consume_xid(&mut self) {
        self.step("takes a number that it does not need");
        let xid = {
            let procs = &mut self.play.world().machines[self.at].procs;
            // A transaction gets an ID before its subtransaction does.
            self.xid = self.xid.or_else(|| Some(procs.assign()));
            procs.assign()
        };
        self.step("is about to give it back");
        self.play.world().machines[self.at].wal.write(self.play.time(), Record::Abort(xid));
        self.step("gives it back");
        self.play.world().machines[self.at].procs.ended(xid);
    }

    fn carry(&self, xid: u64, bound: i64) {
        self.step("takes a lock that carries its bound");
        self.play.world().machines[self.at].procs.carried.push((xid, bound));
    }

    fn carried(&self) -> Vec<(u32, i64)> {
        self.step("looks at the locks");
        let world = self.play.world();
        world.machines[self.at].procs.carried.iter().map(|&(xid, bound)| (xid as u32, bound)).collect()
    }

    fn database_of(&self, xid: u32) -> u32 {
        self.step("looks for a prepared transaction");
        let world = self.play.world();
        let one = world.machines[self.at].procs.prepared.iter().find(|one| one.xid as u32 == xid);
        one.map_or(0, |one| one.database as u32 + 1)
    }
}
