//! What operators and machines do to one server: restarts, lost files, clocks that are accepted, and numbers of nodes.

use std::sync::atomic::Ordering;

use flake_core::Node;
use flake_core::timeline::MARGIN;

use crate::layouts::{KINDS, SECOND};
use crate::oracle::{Failure, time};
use crate::server::{Refused, SLOTS, Server};
use crate::story::{Play, stepped, tell};
use crate::transaction::How;
use crate::wal::{Change, DATABASES};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ending {
    InOrder,
    Crash,
    /// The operating system as well.
    Reboot,
    LosesFile,
}

impl Server {
    /// The next stretch of time that a clock that was ahead has used.
    pub fn skipped(&self) -> Option<i64> {
        self.file.as_ref()?.timeline().skipped().map(|skipped| skipped.from)
    }

    /// Continues at the present clock although later IDs exist. Returns since when there are IDs.
    fn accept(&mut self) -> Result<i64, Refused> {
        let now = self.read_clock();
        // What another memory has used ahead, according to a database, cannot be given back.
        (0..DATABASES).try_for_each(|database| self.open(database))?;
        let ledger = *self.memory.ledger();
        let (new, from) = ledger.accepted(now);
        if new != ledger {
            self.replace(new, None)?;
            self.memory.free_from = i64::MIN;
            self.memory.unstored_floor = i64::MIN;
        }
        let bound = self.memory.bound.saturating_sub(MARGIN);
        if self.memory.announced.fetch_min(from, Ordering::SeqCst).max(bound) > from {
            self.write(Change::Warned { from });
        }
        self.memory.recalls += 1;
        self.memory.last_seen = self.memory.last_seen.min(from);
        Ok(from)
    }
}

impl Play {
    pub fn restart(&mut self, at: usize, ending: Ending, step: i64, slots: u32, preloads: bool) -> Result<(), Failure> {
        if ending == Ending::InOrder {
            self.exit_all(at)?;
        }
        let server = &mut self.servers[at];
        match ending {
            Ending::Reboot => server.boot += 1,
            Ending::LosesFile => server.replace_file(None),
            Ending::InOrder | Ending::Crash => {}
        }
        server.offset += step;
        server.slots = slots;
        server.restart(preloads);
        let how = match ending {
            Ending::InOrder => "is stopped, and started again",
            Ending::Crash => "crashes, and starts again",
            Ending::Reboot => "starts again after its machine has crashed",
            Ending::LosesFile => "crashes, loses flake.mark, and starts again",
        };
        let clock = stepped(step);
        tell!(self, "server {} {how}, with {slots} slots{clock}", self.name(at));
        Ok(())
    }

    /// The clock is accepted. If `go_on`, sessions make IDs a minute after the instant that this returns.
    pub fn accept(&mut self, at: usize, go_on: bool) -> Result<(), Failure> {
        let server = &mut self.servers[at];
        if server.recovers() {
            return Ok(());
        }
        let Ok(from) = server.accept() else { return Ok(()) };
        if from < server.clock() - 1 {
            return Err(Failure(format!("flake_accept_clock() returned {}, which is over", time(from))));
        }
        tell!(self, "server {}: the clock is accepted; IDs can be made from {} on", self.name(at), time(from));
        if !go_on {
            return Ok(());
        }
        // What these have used counts only from now on.
        self.exit_untraced(at)?;
        let server = &mut self.servers[at];
        let from = from.max(server.memory.unstored_floor);
        let room = server.skipped().map_or(i64::MAX, |skipped| skipped.saturating_sub(from));
        if !server.disk_fails && room > 200 * SECOND {
            server.offset += from + 61 * SECOND - server.clock();
            self.make_all(at)?;
        }
        Ok(())
    }

    pub fn start_above(&mut self, at: usize, ahead: i64) {
        let server = &mut self.servers[at];
        let instant = server.clock() + ahead;
        if server.recovers() || server.open(0).is_err() || server.memory.ledger().floor() >= instant {
            return;
        }
        let new = server.memory.ledger().raised_to(instant);
        if server.replace(new, None).is_ok() {
            server.cover(0, new.mark());
            tell!(self, "server {}: flake_start_above raises the floor to {}", self.name(at), time(instant));
        }
    }

    /// One server starts with another number of nodes.
    pub fn recount_one(&mut self, at: usize, count: u32) -> Result<(), Failure> {
        self.exit_all(at)?;
        let server = &mut self.servers[at];
        server.node = Node::new(server.node.id(), count).unwrap();
        server.restart(false);
        tell!(self, "server {} is started again with flake.node_count = {count}", self.name(at));
        Ok(())
    }

    /// All servers are stopped, get another number of nodes, and continue once no clock is behind the last ID of any.
    pub fn recount_all(&mut self, count: u32) -> Result<(), Failure> {
        for at in 0..self.servers.len() {
            self.recount_one(at, count)?;
            let behind = self.oracle.latest - self.servers[at].clock();
            self.servers[at].offset += behind.max(0);
        }
        tell!(self, "no clock is behind the last ID any more");
        Ok(())
    }

    /// Every session makes an ID of every kind. Those without memory for their slots have to wait for the next ticks.
    fn make_all(&mut self, at: usize) -> Result<(), Failure> {
        self.exit_untraced(at)?;
        tell!(self, "server {}: every session makes an ID of every kind", self.name(at));
        let told = self.told.take();
        let made = self.make_each(at);
        self.told = told;
        made
    }

    fn make_each(&mut self, at: usize) -> Result<(), Failure> {
        for (slot, kind) in (0..SLOTS).flat_map(|slot| (0..KINDS).map(move |kind| (slot, kind))) {
            if self.make(at, slot, kind, 1)? == 0 {
                return Err(Failure(format!(
                    "slot {slot} of server {} makes nothing of {}",
                    self.name(at),
                    crate::layouts::name(kind)
                )));
            }
        }
        Ok(())
    }

    /// Sessions that found no memory for their slots exit.
    fn exit_untraced(&mut self, at: usize) -> Result<(), Failure> {
        for slot in 0..SLOTS {
            if self.servers[at].sessions[slot].as_ref().is_some_and(|session| session.unpublished.is_some()) {
                self.exit(at, slot, true)?;
            }
        }
        Ok(())
    }

    /// Once its clock is past all used time, every session of a primary can make IDs again; and once all transactions have
    /// ended, nothing holds a horizon.
    pub fn recover(&mut self, at: usize) -> Result<(), Failure> {
        if self.servers[at].recovers() {
            return Ok(());
        }
        self.servers[at].disk_fails = false;
        for slot in 0..SLOTS {
            self.end(at, slot, How::Commit, false)?;
        }
        while !self.servers[at].wal.prepared.is_empty() {
            self.end_prepared(at, 0, true)?;
        }
        self.exit_untraced(at)?;
        let server = &mut self.servers[at];
        (0..DATABASES).for_each(|database| server.open(database).unwrap());
        let used = server.file.as_ref().and_then(|file| file.timeline().stretches().iter().map(|one| one.until).max());
        let used = used.unwrap_or(i64::MIN).max(server.memory.unstored_floor);
        let behind = used.saturating_sub(server.clock()).max(0);
        server.offset += behind + 120 * SECOND;
        tell!(self, "server {}: all transactions end, and the clock passes all used time", self.name(at));
        self.make_all(at)?;
        self.exit_all(at)?;
        let before = self.servers[at].clock();
        match self.ask(at, 0, false, false)? {
            Some(horizon) if horizon > before => Ok(()),
            found => Err(Failure(format!("the horizon is held although nothing runs: {found:?}"))),
        }
    }
}
