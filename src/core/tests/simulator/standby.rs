//! Several servers: standbys replay and are promoted, and data directories are copied.

use std::sync::Arc;

use crate::disk::File;
use crate::machine::Promise;
use crate::operator::Ending;
use crate::oracle::Branch;
use crate::play::{Play, SERVERS, World, tell};
use crate::rows::Watermark;
use crate::wal::{DATABASES, Record};

impl World {
    /// The standbys of a server whose data directory is replaced cannot follow it any more.
    pub fn cut_off_standbys(&mut self, of: usize) {
        for at in 0..SERVERS {
            if self.machines[at].upstream == Some(of) {
                self.crash_for_good(at);
            }
        }
    }

    fn crash_for_good(&mut self, at: usize) {
        self.forget_memory(at);
        self.machines[at].exists = false;
        self.machines[at].upstream = None;
        self.cut_off_standbys(at);
    }
}

impl Play {
    /// A standby replays some of the WAL of its upstream server.
    pub fn replay(&self, at: usize, most: usize) {
        let mut world = self.world();
        let Some(upstream) = world.machines[at].upstream else { return };
        if !world.machines[at].is_up {
            return;
        }
        let from = world.machines[at].wal.records.len();
        let upto = world.machines[upstream].wal.flushed.min(from.saturating_add(most));
        if upto <= from {
            return;
        }
        let records = world.machines[upstream].wal.records[from..upto].to_vec();
        for (time, record) in records {
            let row = if let Record::Commit(_, row) = record { row } else { None };
            world.machines[at].wal.write(time, record);
            if let Some(row) = row {
                world.come_after(at, row);
            }
        }
        world.machines[at].wal.flushed = upto;
        tell!(world, "server {} replays {} records of server {}", world.name(at), upto - from, world.name(upstream));
    }

    /// A standby becomes a primary while its upstream server may still run.
    pub fn promote(&self, at: usize) {
        let mut world = self.world();
        let Some(upstream) = world.machines[at].upstream else { return };
        if !world.machines[at].is_up {
            return;
        }
        let (new, old) = (&world.machines[at], &world.machines[upstream]);
        let end = new.wal.records.len();
        let branch = Branch { parent: Some((old.branch, end)), promoted: self.time() };
        // With an archive, PostgreSQL leaves out the numbers that others have taken.
        let timeline = old.timeline() + 1 + new.left_out;
        let history: Vec<u32> = old.history.iter().copied().chain([timeline]).collect();
        let replayed = old.promises.iter().filter(|promise| promise.database.is_some() && promise.record <= end);
        let promises: Vec<_> = replayed.cloned().collect();
        let is_known = |watermark: &&Watermark| watermark.record <= end;
        let watermarks: Vec<_> = old.watermarks.iter().filter(is_known).cloned().collect();
        let number = world.oracle.branches.len();
        world.oracle.branches.push(branch);
        let machine = &mut world.machines[at];
        machine.upstream = None;
        machine.history = history;
        machine.left_out = 0;
        machine.branch = number;
        machine.has_looked = [false; DATABASES];
        machine.watermarks = watermarks;
        machine.promises.extend(promises);
        machine.promises.iter_mut().for_each(|promise| promise.waits_for.clear());
        world.recover_transactions(at);
        world.forget_removed_pages(at);
        tell!(world, "server {} is promoted to timeline {timeline}", world.name(at));
    }

    /// A server becomes the standby of another one, from a base backup or by pg_rewind.
    pub fn follow(self: &Arc<Self>, at: usize, source: usize, node: (u32, u32), keeps_file: bool) {
        {
            let world = self.world();
            let upstream = &world.machines[source];
            if at == source || !upstream.exists || upstream.recovers() {
                return;
            }
        }
        self.stop_server(at, Ending::Crash);
        let mut world = self.world();
        world.cut_off_standbys(at);
        let new_life = world.number();
        let upstream = &world.machines[source];
        let mut wal = upstream.wal.clone();
        wal.crash();
        let file = upstream.file.as_ref().map(|file| File::new(file.bytes().to_vec()));
        let (branch, history) = (upstream.branch, upstream.history.clone());
        let upgrade = upstream.upgrade;
        let of_file = |promise: &&Promise| promise.database.is_none();
        let promises = upstream.promises.iter().filter(of_file).cloned().collect();
        let machine = &mut world.machines[at];
        // pg_rewind refuses a cluster that pg_upgrade has made of the other.
        let keeps_file = keeps_file && machine.exists && machine.file.is_some() && machine.upgrade == upgrade;
        if !keeps_file {
            machine.file = file;
            machine.promises = promises;
            machine.life = new_life;
        }
        // Promises in pages come with the replayed WAL.
        machine.promises.retain(|promise| promise.database.is_none());
        (machine.exists, machine.is_up, machine.upstream) = (true, true, Some(source));
        (machine.wal, machine.branch, machine.history) = (wal, branch, history);
        machine.upgrade = upgrade;
        machine.node = node;
        machine.has_looked = [false; DATABASES];
        machine.saved = None;
        machine.watermarks.clear();
        machine.replayed.clear();
        let kept = if keeps_file { ", with its own flake.mark" } else { "" };
        let (name, source) = (world.name(at), world.name(source));
        tell!(world, "server {name} becomes a standby of server {source}, node {} of {}{kept}", node.0, node.1);
    }
}
