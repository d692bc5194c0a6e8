//! A story: what happens to four servers, one event after the other, and how it is told.

use std::rc::Rc;

use flake_core::Node;

use crate::layouts::{KINDS, SECOND};
use crate::operator::Ending;
use crate::oracle::{Failure, Oracle};
use crate::server::Server;
use crate::transaction::How;
use crate::wal::World;

pub const SERVERS: usize = 4;

#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    /// The standbys have numbers of their own, and may make IDs in recovery.
    pub own_numbers: bool,
    pub events: Vec<(usize, Event)>,
}

/// What happens to a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    Make { slot: usize, kind: usize, count: usize },
    MakeOfMany { slot: usize, exits: bool },
    Connect { slot: usize, database: usize, is_traced: bool },
    Exit { slot: usize, in_order: bool },
    Begin { slot: usize, writes: bool, has_one_snapshot: bool },
    End { slot: usize, how: How, stops: bool },
    EndPrepared { which: usize, commits: bool },
    Ask { slot: usize, is_newer: bool, stops: bool },
    Finish { slot: usize },
    Pass { by: i64 },
    Step { by: i64 },
    ToSkipped { by: i64 },
    Restart { ending: Ending, step: i64, slots: u32, preloads: bool },
    Accept { go_on: bool },
    StartAbove { ahead: i64 },
    DiskFails(bool),
    Replay { most: usize },
    Promote,
    SwitchOver,
    Follow { source: usize, rebuilds: bool },
    BackUp,
    Restore { without: usize, step: i64 },
    RecountOne { count: u32 },
    RecountAll { count: u32 },
}

/// A story that is being played.
pub struct Play {
    pub world: Rc<World>,
    pub servers: Vec<Server>,
    pub oracle: Oracle,
    /// The sentences, if it is told.
    pub told: Option<Vec<String>>,
}

/// Adds a sentence.
macro_rules! tell {
    ($play:expr, $($sentence:tt)+) => {
        let sentence = $play.told.is_some().then(|| format!($($sentence)+));
        if let Some(told) = &mut $play.told {
            told.extend(sentence);
        }
    };
}
pub(crate) use tell;

/// Says how a clock was set.
pub fn stepped(by: i64) -> String {
    match by {
        0 => String::new(),
        1.. => format!("; its clock is set ahead by {}", seconds(by)),
        _ => format!("; its clock is set back by {}", seconds(-by)),
    }
}

fn seconds(micros: i64) -> String {
    format!("{} s", micros as f64 / SECOND as f64)
}

impl Play {
    pub fn new(own_numbers: bool, is_told: bool) -> Self {
        let world = World::new();
        let node = |id| Node::new(if own_numbers { id } else { id / 3 * 3 }, 4).unwrap();
        let mut servers: Vec<_> =
            ('a'..).zip(0..SERVERS as u32).map(|(name, id)| Server::new(&world, name, node(id))).collect();
        for standby in [1, 2] {
            servers[standby].wal = servers[0].wal.clone();
            servers[standby].file = servers[0].file.clone();
            servers[standby].upstream = Some(0);
            servers[standby].allow_in_recovery = own_numbers;
            servers[standby].restart(false);
        }
        let mut play = Self { world, servers, oracle: Oracle::default(), told: is_told.then(Vec::new) };
        let numbers = if own_numbers { "numbers of their own" } else { "its number" };
        tell!(play, "servers b and c are standbys of server a, with {numbers}; server d is another primary");
        play
    }

    pub fn name(&self, at: usize) -> char {
        self.servers[at].name
    }

    /// Plays a story to its end, after which every server has to come back.
    pub fn all(&mut self, events: &[(usize, Event)]) -> Result<(), Failure> {
        events.iter().try_for_each(|&(at, event)| self.event(at, event))?;
        (0..SERVERS).try_for_each(|at| self.recover(at))
    }

    fn event(&mut self, at: usize, event: Event) -> Result<(), Failure> {
        match event {
            Event::Make { slot, kind, count } => self.make(at, slot, kind, count).map(|_| ())?,
            Event::MakeOfMany { slot, exits } => {
                for kind in 0..KINDS {
                    self.make(at, slot, kind, 1)?;
                }
                if exits {
                    self.exit(at, slot, true)?;
                }
            }
            Event::Connect { slot, database, is_traced } => self.connect(at, slot, database, is_traced),
            Event::Exit { slot, in_order } => self.exit(at, slot, in_order)?,
            Event::Begin { slot, writes, has_one_snapshot } => self.begin(at, slot, writes, has_one_snapshot)?,
            Event::End { slot, how, stops } => self.end(at, slot, how, stops)?,
            Event::EndPrepared { which, commits } => self.end_prepared(at, which, commits)?,
            Event::Ask { slot, is_newer, stops } => self.ask(at, slot, is_newer, stops).map(|_| ())?,
            Event::Finish { slot } => self.finish(at, slot)?,
            Event::Pass { by } => {
                self.world.time.set(self.world.time.get() + by);
                tell!(self, "{} pass", seconds(by));
            }
            Event::Step { by } => {
                self.servers[at].offset += by;
                tell!(self, "server {}{}", self.name(at), stepped(by).replacen("; its", ": its", 1));
            }
            Event::ToSkipped { by } => {
                let server = &mut self.servers[at];
                if let Some(from) = server.skipped() {
                    let by = (from + by - server.clock()).max(0);
                    server.offset += by;
                    tell!(self, "server {}: its clock is set ahead by {} to where it was", self.name(at), seconds(by));
                }
            }
            Event::Restart { ending, step, slots, preloads } => self.restart(at, ending, step, slots, preloads)?,
            Event::Accept { go_on } => self.accept(at, go_on)?,
            Event::StartAbove { ahead } => self.start_above(at, ahead),
            Event::DiskFails(fails) => {
                self.servers[at].disk_fails = fails;
                tell!(self, "server {}: the disk {}", self.name(at), if fails { "is full" } else { "has room" });
            }
            Event::Replay { most } => self.replay(at, most),
            Event::Promote => self.promote(at),
            Event::SwitchOver => self.switch_over(at)?,
            Event::Follow { source, rebuilds } => self.follow(at, source, rebuilds)?,
            Event::BackUp => self.back_up(at),
            Event::Restore { without, step } => self.restore(at, without, step),
            Event::RecountOne { count } => self.recount_one(at, count)?,
            Event::RecountAll { count } => self.recount_all(count)?,
        }
        Ok(())
    }
}
