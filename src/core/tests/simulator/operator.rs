//! Acts of operators and machines on one server: clocks, restarts, files, databases.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use flake_core::ledger::durable::record::Reserved;
use flake_core::ledger::host::Page;

use crate::disk::File;
use crate::exemptions::has_a_page;
use crate::machine::{Machine, PROCS};
use crate::oracle::{Upgrade, time};
use crate::play::{Play, World, tell};
use crate::wal::{DATABASES, Record};

/// How a server stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ending {
    InOrder,
    /// PostgreSQL crashes, so its memory is lost.
    Crash,
    /// The machine crashes too. The number says which sectors of the file had reached the disk.
    Reboot(u64),
}

impl World {
    /// Ends the sessions at once, and forgets the memory.
    pub fn forget_memory(&mut self, at: usize) {
        self.running
            .iter()
            .filter(|running| running.at == at)
            .for_each(|running| running.control.is_dead.store(true, Ordering::Relaxed));
        let machine = &mut self.machines[at];
        machine.memory = Arc::default();
        machine.sessions = Default::default();
        machine.is_up = false;
        machine.recreating = None;
        machine.promises.iter_mut().for_each(|promise| promise.waits_for.clear());
        machine.set_back();
        machine.wal.crash();
        self.recover_transactions(at);
    }

    /// The file is not the one that the server has written itself.
    fn has_another_file(&mut self, at: usize) {
        let life = self.number();
        let machine = &mut self.machines[at];
        machine.life = life;
        machine.has_looked = [false; DATABASES];
        machine.promises.retain(|promise| promise.database.is_some());
        machine.watermarks.retain(has_a_page);
        if machine.upstream.is_none() {
            self.forget_removed_pages(at);
        }
    }

    /// After the loss of all memory, no server knows of a page that was dropped; CREATE EXTENSION then makes a page as in a new
    /// database.
    pub fn forget_removed_pages(&mut self, at: usize) {
        let machine = &mut self.machines[at];
        let wal = &mut machine.wal;
        let time = wal.records.last().map_or(0, |(time, _)| *time);
        for database in 0..DATABASES {
            if wal.databases[database].0.is_none() {
                let record = wal.write(time, Record::Database(database, self.oracle.databases.len()));
                wal.flush(record);
                self.oracle.databases.push((usize::MAX, 0, 0));
                machine.promises.retain(|promise| promise.database != Some(database));
            }
        }
    }
}

impl Play {
    pub fn step_clock(&self, at: usize, by: i64, how: &str) {
        let mut world = self.world();
        let machine = &mut world.machines[at];
        let offset = machine.offset.fetch_add(by, Ordering::Relaxed) + by;
        if by < 0 {
            machine.set_back();
        }
        let clock = time(self.time() + offset);
        tell!(world, "server {}: its clock {how}, and says {clock}", world.name(at));
    }

    /// Brings the clock to when an ID was made: time passes, or the clock is set.
    pub fn to_used(&self, at: usize, which: usize, by: i64, waits: bool) {
        let (step, name) = {
            let world = self.world();
            let Some(last) = world.oracle.made.len().checked_sub(1) else { return };
            let made = &world.oracle.made[last - which % world.oracle.made.len()];
            (made.clock + by - self.time() - world.machines[at].offset(), world.name(at))
        };
        if !waits {
            self.step_clock(at, step, "comes to where IDs were made");
        } else if step > 0 {
            self.pass(step);
            tell!(self.world(), "time passes until the clock of server {name} is where IDs were made");
        }
    }

    pub fn stop_server(self: &Arc<Self>, at: usize, ending: Ending) {
        if !self.world().machines[at].is_up {
            return;
        }
        if ending == Ending::InOrder {
            (0..PROCS).for_each(|proc| self.exit(at, proc, None));
            let machine = &mut self.world().machines[at];
            let all = machine.wal.records.len();
            machine.wal.flush(all);
        }
        let mut world = self.world();
        world.forget_memory(at);
        if let Ending::Reboot(sectors) = ending {
            let machine = &mut world.machines[at];
            if let Some(file) = &mut machine.file {
                file.crash(sectors);
            }
        }
        let how = match ending {
            Ending::InOrder => "is shut down".to_owned(),
            Ending::Crash => "crashes".to_owned(),
            Ending::Reboot(sectors) => {
                format!("and its machine crash; of what was not flushed, {sectors:x} is on disk")
            }
        };
        tell!(world, "server {} {how}", world.name(at));
    }

    pub fn start_server(&self, at: usize) {
        let mut world = self.world();
        let machine = &mut world.machines[at];
        if machine.exists && !machine.is_up {
            machine.is_up = true;
            machine.memory = Arc::default();
            if !machine.recovers() {
                let record = machine.wal.write(self.time(), Record::Start(machine.procs.next));
                machine.wal.flush(record);
            }
            tell!(world, "server {} starts", world.name(at));
        }
    }

    pub fn renumber(&self, at: usize, node: (u32, u32)) {
        let mut world = self.world();
        let machine = &mut world.machines[at];
        if machine.node != node && machine.exists {
            machine.node = node;
            tell!(world, "server {} is now node {} of {}", world.name(at), node.0, node.1);
        }
    }

    /// Copies the file.
    pub fn save_file(&self, at: usize) {
        let mut world = self.world();
        let machine = &mut world.machines[at];
        if let Some(file) = &machine.file {
            machine.saved = Some(file.bytes().to_vec());
            tell!(world, "server {}: flake.mark is copied", world.name(at));
        }
    }

    pub fn restore_file(self: &Arc<Self>, at: usize) {
        if self.world().machines[at].saved.is_none() {
            return;
        }
        self.stop_server(at, Ending::InOrder);
        {
            let mut world = self.world();
            world.has_another_file(at);
            world.machines[at].file = world.machines[at].saved.clone().map(File::new);
            tell!(world, "server {}: the copy of flake.mark takes its place", world.name(at));
        }
        self.start_server(at);
    }

    pub fn lose_file(self: &Arc<Self>, at: usize, ending: Ending) {
        if !self.world().machines[at].exists {
            return;
        }
        self.stop_server(at, ending);
        {
            let mut world = self.world();
            world.has_another_file(at);
            world.machines[at].file = None;
            tell!(world, "server {} loses flake.mark", world.name(at));
        }
        self.start_server(at);
    }

    /// Upgrades the server: pg_upgrade keeps only the last values of the sequences.
    pub fn upgrade(self: &Arc<Self>, at: usize) {
        let is_primary = {
            let world = self.world();
            world.machines[at].exists && !world.machines[at].recovers()
        };
        if !is_primary {
            return;
        }
        self.stop_server(at, Ending::InOrder);
        {
            let mut world = self.world();
            world.has_another_file(at);
            world.cut_off_standbys(at);
            let machine = &world.machines[at];
            let knows_turn = |page: &Arc<Page>| {
                let turn = page.record().ok().and_then(|record| record.turns.last);
                page.bytes.is_some() && turn.map(|turn| turn.timeline) == machine.history.last().copied()
            };
            let forgets =
                machine.wal.databases.iter().filter_map(|(page, _)| page.as_ref()).any(|page| !knows_turn(page));
            let upgrade = Upgrade { before: machine.upgrade, forgets };
            world.oracle.upgrades.push(upgrade);
            let upgrade = world.oracle.upgrades.len();
            let machine = &mut world.machines[at];
            machine.file = None;
            // The guarantee does not cover a file of the old cluster that is put into the new one.
            machine.saved = None;
            machine.history = vec![1];
            machine.upgrade = upgrade;
            keep_watermarks(machine);
            for database in 0..DATABASES {
                if let Some(page) = machine.wal.databases[database].0.clone() {
                    let reserved = page.reserved.map(|reserved| Reserved::from_number(reserved.number()));
                    let without = Page { bytes: None, reserved, turns: page.turns };
                    let record = Record::Extension(database, Some(Arc::new(without)));
                    let record = machine.wal.write(self.time(), record);
                    machine.wal.flush(record);
                }
            }
            tell!(world, "server {} is upgraded by pg_upgrade", world.name(at));
        }
        self.start_server(at);
    }

    /// Drops a database, and creates it under its old OID with the other database as template.
    pub fn new_database(self: &Arc<Self>, at: usize, database: usize) {
        {
            let world = self.world();
            let machine = &world.machines[at];
            if !machine.is_up || machine.recovers() || !machine.has_looked[database] || machine.recreating.is_some() {
                return;
            }
        }
        // No session may be connected to either.
        (0..PROCS).for_each(|proc| self.exit(at, proc, None));
        let mut world = self.world();
        let time = self.time();
        let machine = &mut world.machines[at];
        let template = machine.wal.databases[1 - database].0.clone();
        let parent = machine.wal.numbers[1 - database];
        let branch = machine.branch;
        let number = world.oracle.databases.len();
        let machine = &mut world.machines[at];
        machine.wal.write(time, Record::Database(database, number));
        let record = machine.wal.write(time, Record::Extension(database, template));
        machine.wal.flush(record);
        world.oracle.databases.push((parent, branch, record));
        let machine = &mut world.machines[at];
        machine.promises.retain(|promise| promise.database != Some(database));
        let name = world.name(at);
        tell!(world, "server {name}: database {database} is created anew from database {}", 1 - database);
    }

    /// Drops the extension in a database.
    pub fn drop_extension(self: &Arc<Self>, at: usize, database: usize) {
        (0..PROCS).for_each(|proc| self.exit(at, proc, None));
        let mut world = self.world();
        let machine = &mut world.machines[at];
        let is_ready = machine.is_up && !machine.recovers() && machine.recreating.is_none();
        if is_ready && machine.has_looked[database] && machine.wal.databases[database].0.is_some() {
            let record = machine.wal.write(self.time(), Record::Extension(database, None));
            machine.wal.flush(record);
            tell!(world, "server {}: the extension is dropped in database {database}", world.name(at));
        }
    }
}

/// pg_upgrade keeps the generation of each page, and not how often the clock was accepted.
fn keep_watermarks(machine: &mut Machine) {
    let pages = (0..DATABASES).filter(|&database| machine.wal.databases[database].0.is_some());
    let acceptances: Vec<u64> = pages.map(|database| machine.wal.reserved_in(database).acceptances).collect();
    let accepted = acceptances.iter().copied().max().unwrap_or_default();
    let is_equal = acceptances.iter().all(|&other| other == accepted);
    // The server has returned some as a primary, and others as a standby.
    for watermarks in [&mut machine.watermarks, &mut machine.replayed] {
        watermarks.retain(|watermark| is_equal && watermark.acceptances == accepted);
        watermarks.iter_mut().for_each(|watermark| watermark.acceptances &= 1);
    }
}
