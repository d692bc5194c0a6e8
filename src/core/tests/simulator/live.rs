//! How every story begins and ends. At the end, all clocks are right, and every primary must make IDs again at once.

use std::sync::Arc;

use flake_core::ledger::time::grant::RESERVE_AHEAD_MICROS;

use crate::layouts::{LAYOUTS, SECOND, own_ids};
use crate::machine::PROCS;
use crate::operator::Ending;
use crate::oracle::{Branch, Made};
use crate::play::{Play, SERVERS, tell};
use crate::wal::DATABASES;

/// The kind by which a server is tested: its tick is a millisecond.
const KIND: usize = 1;
/// The length of a tick, and the time that attempts take.
const TICK: i64 = 3000;

impl Play {
    /// Begins with a primary on which the extension has just been created in every database.
    pub fn begin(self: &Arc<Self>) {
        {
            let mut world = self.world();
            world.oracle.branches.push(Branch { parent: None, promoted: i64::MIN });
            world.oracle.databases = (0..DATABASES).map(|database| (database, 0, 0)).collect();
            world.machines[0].wal.numbers = std::array::from_fn(|database| database);
            world.machines[0].exists = true;
        }
        self.start_server(0);
        for database in 0..DATABASES {
            self.world().machines[0].database[0] = database;
            self.recreate(0, 0, None);
            self.commit_or_roll_back(0, 0, true, None);
            self.exit(0, 0, None);
        }
        let mut world = self.world();
        world.machines[0].database[0] = 0;
        if let Some(told) = &mut world.told {
            told.clear();
        }
        tell!(world, "server a is node 0 of 2, and has two databases");
    }

    /// Every primary makes IDs again, and its watermarks reach the current instant.
    pub fn epilogue(self: &Arc<Self>) {
        let primaries: Vec<usize> = {
            let world = self.world();
            let is_primary = |at: &usize| world.machines[*at].exists && !world.machines[*at].recovers();
            (0..SERVERS).filter(is_primary).collect()
        };
        primaries.iter().for_each(|&at| self.knows_its_own(at));
        primaries.iter().for_each(|&at| self.comes_back(at));
        primaries.iter().for_each(|&at| self.knows_its_own(at));
        for at in primaries {
            (0..DATABASES).for_each(|database| self.watermark_comes_up(at, database));
        }
    }

    /// No row that a server has is taken for one of another server with the same number.
    fn knows_its_own(&self, at: usize) {
        let mut world = self.world();
        let machine = &world.machines[at];
        let own: [[_; LAYOUTS]; DATABASES] = std::array::from_fn(|database| {
            let page = machine.wal.databases[database].0.as_deref().cloned().unwrap_or_default();
            std::array::from_fn(|kind| own_ids(&machine.memory, &page, kind))
        });
        let is_here = |made: &&Made| {
            // pg_upgrade and another number of nodes divide the IDs anew.
            made.record != usize::MAX
                && made.number == machine.wal.numbers[made.database]
                && made.upgrade == machine.upgrade
                && made.node == machine.node
                && world.oracle.has_replayed(machine.branch, made)
        };
        let made = |made: &&Made| {
            own[made.database]
                .get(made.kind)
                .and_then(Option::as_ref)
                .is_some_and(|own| own.has_not_made(made.id.number()))
        };
        let foreign = world.oracle.made.iter().filter(is_here).find(made).map(|made| format!("{made}"));
        if let Some(foreign) = foreign {
            let name = world.name(at);
            world.fail(format!("server {name} takes an ID for another server's, which was made by\n  {foreign}"));
        }
    }

    fn has_failed(&self) -> bool {
        self.world().failure.is_some()
    }

    fn comes_back(self: &Arc<Self>, at: usize) {
        {
            let mut world = self.world();
            world.machines[at].disk_fails = false;
            tell!(world, "in the end the disk of server {} has room", world.name(at));
        }
        self.start_server(at);
        let offset = self.world().machines[at].offset();
        if offset != 0 {
            self.step_clock(at, -offset, "is set right");
        }
        (0..PROCS).for_each(|proc| self.exit(at, proc, None));
        for database in 0..DATABASES {
            if !self.connects(at, database) {
                continue;
            }
            if self.makes_at_once(at) {
                continue;
            }
            // IDs led the clock by more than flake.max_lead, perhaps in both generations.
            self.accept(at, 0, None);
            if self.makes_at_once(at) {
                continue;
            }
            self.world().machines[at].max_lead = i64::MAX;
            if !self.makes_at_once(at) {
                return self.is_stuck(at, database, "although IDs may lead the clock");
            }
        }
        if !self.has_any_time() {
            self.restarts_are_cheap(at);
        }
    }

    fn connects(self: &Arc<Self>, at: usize, database: usize) -> bool {
        self.exit(at, 0, None);
        let mut world = self.world();
        world.machines[at].database[0] = database;
        world.machines[at].wal.databases[database].0.is_some() && world.failure.is_none()
    }

    /// Makes an ID in the connected database. Returns whether that succeeded at once, in the next tick, or after a story's failure.
    fn makes_at_once(self: &Arc<Self>, at: usize) -> bool {
        let tries = if self.has_any_time() { 200 } else { 4 };
        for _ in 0..tries {
            if self.make((at, 0), (KIND, 1), false, None) == 1 || self.has_failed() {
                return true;
            }
            self.pass(TICK / 3);
        }
        false
    }

    /// How far the last ID was ahead of the clock, which is right.
    fn lead(&self) -> i64 {
        let world = self.world();
        world.oracle.made.last().map_or(0, |made| made.id.start - made.time)
    }

    fn is_stuck(&self, at: usize, database: usize, why: &str) {
        let mut world = self.world();
        let ledger = world.machines[at].memory.state.lock().unwrap().ledger;
        let name = world.name(at);
        world
            .fail(format!("server {name} makes no IDs in database {database}, {why}; now {}: {ledger:?}", self.time()));
    }

    /// A lead is over after twice its length. Restarts and crashes in a row, and other databases, cost the reserved time once.
    fn restarts_are_cheap(self: &Arc<Self>, at: usize) {
        let databases: Vec<usize> = (0..DATABASES).filter(|&database| self.connects(at, database)).collect();
        // Twice: the file may have what a failed write has reserved, which counts from the next write on.
        for &database in databases.iter().chain(&databases) {
            self.connects(at, database);
            self.makes_at_once(at);
            let ledger = self.world().machines[at].memory.state.lock().unwrap().ledger;
            let ahead = ledger.map_or(0, |ledger| ledger.reserved.end() - self.time());
            self.pass(2 * ahead.max(0) + SECOND);
        }
        for round in 0..6 {
            for &database in &databases {
                if self.connects(at, database) && !self.makes_at_once(at) {
                    return self.is_stuck(at, database, "although it has just made some");
                }
                let (lead, most) = (self.lead(), if round == 0 { 0 } else { RESERVE_AHEAD_MICROS + SECOND });
                if lead > most && !self.has_failed() {
                    let sentence = format!("IDs lead the clock by {lead} microseconds after {round} restarts");
                    return self.world().fail(sentence);
                }
            }
            (0..PROCS).for_each(|proc| self.exit(at, proc, None));
            self.stop_server(at, if round % 2 == 0 { Ending::InOrder } else { Ending::Crash });
            self.start_server(at);
            self.pass(SECOND);
        }
    }

    /// If no transaction is open, the watermark is the current instant.
    fn watermark_comes_up(self: &Arc<Self>, at: usize, database: usize) {
        if !self.connects(at, database) {
            return;
        }
        while self.world().machines[at].procs.prepared.iter().any(|one| one.database == database) {
            self.finish(at, 0, 0, false, None);
        }
        let now = self.time();
        let watermark = self.ask(at, 0, None);
        if watermark.is_none_or(|watermark| watermark < now) && !self.has_failed() && !self.has_any_time() {
            let mut world = self.world();
            let name = world.name(at);
            world.fail(format!(
                "the watermark of server {name} stays behind in database {database}: {watermark:?}, now {now}"
            ));
        }
    }
}
