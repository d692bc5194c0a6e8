//! How every story begins and ends. At the end, all clocks are right, and every primary must soon make IDs again.

use std::sync::Arc;

use flake_core::ledger::part_time::AHEAD;

use crate::layouts::SECOND;
use crate::machine::{Machine, SLOTS};
use crate::operator::Ending;
use crate::oracle::Branch;
use crate::play::{Play, SERVERS, World, tell};
use crate::story::seconds;
use crate::wal::DATABASES;

/// The kind by which a server is tested: its tick is a millisecond.
const KIND: usize = 1;
/// How long a server may need if no clock was ahead, even after promotions and losses of files: the three seconds of a window, and up to
/// a tenth of a second by which the attempt that opens it comes late.
const USUAL: i64 = AHEAD + SECOND / 10;
/// The length of a tick, and the time that attempts take.
const TICK: i64 = 3000;

impl World {
    /// An instant that no granted time exceeds.
    fn latest(&self) -> i64 {
        let ledger = |machine: &Machine| machine.memory.state.try_lock().ok()?.ledger;
        let granted = self.machines.iter().filter_map(ledger).map(|ledger| ledger.time.used.until()).max();
        granted.unwrap_or(i64::MIN).max(self.above).saturating_add(AHEAD)
    }

    /// Returns the end of the time after an instant that may have been used, because clocks were there.
    fn used_after(&self, instant: i64) -> i64 {
        let mut clocks = self.granted_at.clone();
        clocks.sort_unstable();
        let end = if self.above > instant { self.latest() } else { instant };
        clocks.into_iter().fold(end, |end, clock| if clock - AHEAD <= end { end.max(clock + AHEAD) } else { end })
    }
}

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
        self.start_server(0, false);
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

    /// Every primary makes IDs again, and its horizons reach the current instant.
    pub fn epilogue(self: &Arc<Self>) {
        let primaries: Vec<usize> = {
            let world = self.world();
            let is_primary = |at: &usize| world.machines[*at].exists && !world.machines[*at].recovers();
            (0..SERVERS).filter(is_primary).collect()
        };
        primaries.iter().for_each(|&at| self.comes_back(at));
        for at in primaries {
            (0..DATABASES).for_each(|database| self.horizon_comes_up(at, database));
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
        self.start_server(at, false);
        let offset = self.world().machines[at].offset();
        if offset != 0 {
            self.step_clock(at, -offset, "is set right");
        }
        (0..SLOTS).for_each(|slot| self.exit(at, slot, None));
        for database in 0..DATABASES {
            if !self.connects(at, database) {
                continue;
            }
            if self.makes_within(at, USUAL) {
                continue;
            }
            let was_ahead = self.world().machines.iter().any(|machine| machine.may_wait);
            if !was_ahead && !self.has_failed() {
                return self.is_stuck(at, database, "although no clock was ahead");
            }
            self.accept(at, 0, None);
            let used = self.world().used_after(self.time()) - self.time();
            // If a clock was accepted several times, gaps that it has passed are forgotten.
            let passed = if self.world().machines[at].acceptances > 4 { self.latest_clock() - self.time() } else { 0 };
            if ![USUAL, used, passed].iter().any(|&limit| self.makes_within(at, limit)) && !self.has_failed() {
                return self.is_stuck(at, database, "although its clock was accepted");
            }
        }
        self.restarts_are_cheap(at);
    }

    /// Whether more than one promotion or replaced file has raised the marks.
    fn is_renewed_again(&self) -> bool {
        let world = self.world();
        world.renewed + world.oracle.branches.len() as i64 > 2
    }

    /// The latest reading of a clock for which time was granted.
    fn latest_clock(&self) -> i64 {
        let world = self.world();
        world.granted_at.iter().max().map_or(0, |clock| clock + AHEAD)
    }

    fn connects(self: &Arc<Self>, at: usize, database: usize) -> bool {
        self.exit(at, 0, None);
        let mut world = self.world();
        world.machines[at].database[0] = database;
        world.machines[at].wal.databases[database].0.is_some() && world.failure.is_none()
    }

    /// Makes an ID in the connected database within a limit. Returns whether that succeeded.
    fn makes_within(self: &Arc<Self>, at: usize, limit: i64) -> bool {
        let until = self.time() + limit + TICK;
        let told = self.world().told.take();
        let is_made = self.tries(at, until, (limit / 64).max(TICK / 3));
        let mut world = self.world();
        if told.is_some() {
            world.told = told;
        }
        let after = if is_made { "makes IDs" } else { "makes none" };
        tell!(world, "server {}: session 0 tries for {}, and {after}", world.name(at), seconds(limit));
        is_made
    }

    fn tries(self: &Arc<Self>, at: usize, until: i64, pause: i64) -> bool {
        loop {
            if self.make((at, 0), (KIND, 1), false, None) == 1 {
                return true;
            }
            if self.time() > until || self.has_failed() {
                return false;
            }
            self.pass(pause.min((until - self.time()).max(TICK / 3)));
        }
    }

    fn is_stuck(&self, at: usize, database: usize, why: &str) {
        let mut world = self.world();
        let used = world.machines[at].memory.state.try_lock().ok().and_then(|state| state.ledger);
        let used =
            used.map(|ledger| (ledger.time.used.until(), ledger.time.used.gaps().to_vec(), ledger.horizons.bound));
        let name = world.name(at);
        world.fail(format!("server {name} makes no IDs in database {database}, {why}; now {}: {used:?}", self.time()));
    }

    /// An orderly restart costs nothing, nor does a first ID in another database. A crash costs the granted time.
    fn restarts_are_cheap(self: &Arc<Self>, at: usize) {
        let databases: Vec<usize> = (0..DATABASES).filter(|&database| self.connects(at, database)).collect();
        // Waits for the end of time that was granted ahead, or given up by terminated sessions.
        let left = {
            let world = self.world();
            world.latest().saturating_sub(self.time()).max(AHEAD)
        };
        self.pass(left);
        for (ending, limit) in [(Ending::InOrder, 0), (Ending::Crash, AHEAD)] {
            for &database in &databases {
                // In a database that is read again, marks of another number can take as long as a window.
                let first = if self.is_renewed_again() { AHEAD } else { 0 };
                if self.connects(at, database) && !self.makes_within(at, first) {
                    return self.is_stuck(at, database, "although it has just made some");
                }
            }
            (0..SLOTS).for_each(|slot| self.exit(at, slot, None));
            self.stop_server(at, ending);
            self.start_server(at, false);
            let mut limit = limit;
            for &database in &databases {
                // The session waits for the next tick.
                if self.connects(at, database) && !self.makes_within(at, limit) && !self.has_failed() {
                    return self.is_stuck(at, database, "although it was only restarted");
                }
                limit = 0;
            }
        }
    }

    /// If no transaction is open, the horizon is the current instant.
    fn horizon_comes_up(self: &Arc<Self>, at: usize, database: usize) {
        if !self.connects(at, database) {
            return;
        }
        while self.world().machines[at].procs.prepared.iter().any(|one| one.database == database) {
            self.finish(at, 0, 0, false, None);
        }
        let now = self.time();
        let horizon = self.ask(at, 0, None);
        if horizon.is_none_or(|horizon| horizon < now) && !self.has_failed() {
            let mut world = self.world();
            let name = world.name(at);
            world.fail(format!(
                "the horizon of server {name} stays behind in database {database}: {horizon:?}, now {now}"
            ));
        }
    }
}
