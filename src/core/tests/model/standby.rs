//! Several servers: standbys replay, are promoted, come back, and data directories are copied and restored.

use crate::oracle::Failure;
use crate::server::{SLOTS, Server};
use crate::story::{Play, tell};
use crate::wal::{Change, Wal};

impl Server {
    /// The server begins a timeline of its own.
    fn promote(&mut self) {
        (self.upstream, self.opened) = (None, None);
        let timeline = self.wal.timeline + 1;
        self.write(Change::Timeline(timeline));
        self.wal.begin();
    }
}

impl Play {
    pub fn exit_all(&mut self, at: usize) -> Result<(), Failure> {
        (0..SLOTS).try_for_each(|slot| self.exit(at, slot, true))
    }

    /// A standby replays some of what its upstream server has written.
    pub fn replay(&mut self, at: usize, most: usize) {
        let Some(upstream) = self.servers[at].upstream else { return };
        let end = self.servers[upstream].wal.end;
        if let Some(replayed @ 1..) = self.servers[at].wal.replay(end, most) {
            tell!(self, "server {} replays {replayed} records of server {}", self.name(at), self.name(upstream));
        }
    }

    /// A standby becomes a primary, while its upstream server goes on.
    pub fn promote(&mut self, at: usize) {
        if let Some(upstream) = self.servers[at].upstream {
            self.servers[at].promote();
            let timeline = self.servers[at].wal.timeline;
            let (name, old) = (self.name(at), self.name(upstream));
            tell!(self, "server {name} is promoted to timeline {timeline}, while server {old} goes on");
        }
    }

    /// A standby and its primary change places.
    pub fn switch_over(&mut self, at: usize) -> Result<(), Failure> {
        let Some(old) = self.servers[at].upstream.filter(|&old| !self.servers[old].recovers()) else { return Ok(()) };
        self.exit_all(old)?;
        let end = self.servers[old].wal.end;
        if self.servers[at].wal.replay(end, usize::MAX).is_some() {
            tell!(self, "servers {} and {} change places", self.name(old), self.name(at));
            self.servers[at].promote();
            self.servers[old].upstream = Some(at);
        }
        self.servers[old].restart(false);
        Ok(())
    }

    /// A server becomes the standby of another one, after pg_rewind or from a base backup.
    pub fn follow(&mut self, at: usize, source: usize, rebuilds: bool) -> Result<(), Failure> {
        let mut above = Some(source);
        while let Some(server) = above {
            if server == at {
                return Ok(());
            }
            above = self.servers[server].upstream;
        }
        let common = self.world.common(self.servers[at].wal.end, self.servers[source].wal.end);
        if common == 0 && !rebuilds {
            return Ok(());
        }
        self.exit_all(at)?;
        let (wal, file) = (self.servers[source].wal.clone(), self.servers[source].file.clone());
        let server = &mut self.servers[at];
        let goes_on = common == server.wal.end && !rebuilds;
        if !goes_on {
            server.wal = wal;
            server.replace_file(file);
            server.was_rewound = true;
        }
        server.upstream = Some(source);
        server.restart(false);
        let how = match (rebuilds, goes_on) {
            (true, _) => ", from a base backup of it",
            (false, false) => ", after pg_rewind",
            (false, true) => "",
        };
        tell!(self, "server {} becomes a standby of server {}{how}", self.name(at), self.name(source));
        Ok(())
    }

    pub fn back_up(&mut self, at: usize) {
        let server = &mut self.servers[at];
        server.backup = Some((server.file.clone(), server.wal.end));
        tell!(self, "server {} is backed up", self.name(at));
    }

    /// The backup is recovered to a point in time, in the place of its original: without the last records of its log.
    pub fn restore(&mut self, at: usize, without: usize, step: i64) {
        let server = &mut self.servers[at];
        let Some((file, from)) = server.backup.clone() else { return };
        let path = self.world.after(from, server.wal.end).unwrap_or_default();
        let target = path.len().checked_sub(without + 1).map_or(from, |last| path[last]);
        let mut wal = Wal::new(&self.world);
        wal.replay(target, usize::MAX);
        server.wal = wal;
        server.replace_file(file);
        server.offset += step;
        server.restart(false);
        server.promote();
        let back = path.len().min(without);
        let clock = crate::story::stepped(step);
        tell!(self, "server {} is restored from its backup, without its last {back} records{clock}", self.name(at));
    }
}
