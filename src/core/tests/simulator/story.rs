//! A story: a list of events, each on one server, and how it is printed.

use std::sync::Arc;

use crate::layouts::{KINDS, SECOND};
use crate::operator::Ending;
use crate::play::{Play, tell};

#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    pub events: Vec<(usize, Event)>,
    /// If it is not 0, sessions get any number for flake's time; the numbers follow from this one.
    pub any_time: u64,
}

/// An event of a server, or of its session in a proc, which may stop at one of its points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    Make {
        proc: usize,
        kind: usize,
        count: usize,
        waits: bool,
        stop: Option<u16>,
    },
    MakeOfMany {
        proc: usize,
    },
    GoOn {
        proc: usize,
        stop: Option<u16>,
    },
    Connect {
        proc: usize,
        database: usize,
    },
    Exit {
        proc: usize,
        stop: Option<u16>,
    },
    Kill {
        proc: usize,
    },
    Begin {
        proc: usize,
    },
    End {
        proc: usize,
        commits: bool,
        stop: Option<u16>,
    },
    Write {
        proc: usize,
    },
    Look {
        proc: usize,
    },
    Prepare {
        proc: usize,
        stop: Option<u16>,
    },
    Finish {
        proc: usize,
        which: usize,
        commits: bool,
        stop: Option<u16>,
    },
    Cover {
        proc: usize,
        ago: i64,
        stop: Option<u16>,
    },
    Churn {
        proc: usize,
        count: usize,
    },
    Recreate {
        proc: usize,
        stop: Option<u16>,
    },
    Drop {
        database: usize,
    },
    Accept {
        proc: usize,
        stop: Option<u16>,
    },
    StartAbove {
        proc: usize,
        ahead: i64,
        stop: Option<u16>,
    },
    Ask {
        proc: usize,
        stop: Option<u16>,
    },
    Publish {
        proc: usize,
        stop: Option<u16>,
    },
    Pass {
        by: i64,
    },
    Step {
        by: i64,
    },
    SetRight,
    ToUsed {
        which: usize,
        by: i64,
        waits: bool,
    },
    Stop {
        ending: Ending,
    },
    Start,
    Restart {
        node: (u32, u32),
    },
    DiskFails(bool),
    SaveFile,
    RestoreFile,
    LoseFile {
        ending: Ending,
    },
    Upgrade,
    NewDatabase {
        database: usize,
    },
    Replay {
        most: usize,
    },
    /// The next promotion leaves out so many numbers of timelines.
    LeaveOut {
        numbers: u32,
    },
    Promote,
    Follow {
        source: usize,
        node: (u32, u32),
        keeps_file: bool,
    },
}

/// Which sessions must have finished before an event.
pub enum Needs {
    Nothing,
    Session(usize),
    AllSessions,
}

impl Event {
    pub fn needs(&self) -> Needs {
        match *self {
            Self::Make { proc, .. }
            | Self::MakeOfMany { proc }
            | Self::GoOn { proc, .. }
            | Self::Connect { proc, .. }
            | Self::Exit { proc, .. }
            | Self::Kill { proc }
            | Self::Begin { proc }
            | Self::End { proc, .. }
            | Self::Write { proc }
            | Self::Look { proc }
            | Self::Prepare { proc, .. }
            | Self::Finish { proc, .. }
            | Self::Cover { proc, .. }
            | Self::Churn { proc, .. }
            | Self::Recreate { proc, .. }
            | Self::Accept { proc, .. }
            | Self::StartAbove { proc, .. }
            | Self::Ask { proc, .. }
            | Self::Publish { proc, .. } => Needs::Session(proc),
            Self::Restart { .. }
            | Self::Stop { ending: Ending::InOrder }
            | Self::NewDatabase { .. }
            | Self::Drop { .. }
            | Self::Upgrade => Needs::AllSessions,
            Self::LoseFile { ending: Ending::InOrder } | Self::RestoreFile => Needs::AllSessions,
            _ => Needs::Nothing,
        }
    }
}

/// Describes how a clock was set.
fn stepped(by: i64) -> String {
    if by < 0 { format!("is set back by {}", seconds(-by)) } else { format!("is set ahead by {}", seconds(by)) }
}

pub fn seconds(micros: i64) -> String {
    format!("{} s", micros as f64 / SECOND as f64)
}

impl Play {
    /// Lets an event happen.
    pub fn event(self: &Arc<Self>, at: usize, event: Event) {
        match event {
            Event::Make { proc, kind, count, waits, stop } => drop(self.make((at, proc), (kind, count), waits, stop)),
            Event::MakeOfMany { proc } => {
                for kind in 0..KINDS {
                    self.make((at, proc), (kind, 1), false, None);
                }
            }
            Event::GoOn { .. } => {}
            Event::Connect { proc, database } => {
                self.exit(at, proc, None);
                self.world().machines[at].database[proc] = database;
            }
            Event::Exit { proc, stop } => self.exit(at, proc, stop),
            // An idle session that is killed exits as usual.
            Event::Kill { proc } => self.exit(at, proc, None),
            Event::Begin { proc } => self.begin_transaction(at, proc),
            Event::End { proc, commits, stop } => self.commit_or_roll_back(at, proc, commits, stop),
            Event::Write { proc } => self.write(at, proc),
            Event::Look { proc } => self.look(at, proc),
            Event::Prepare { proc, stop } => self.prepare(at, proc, stop),
            Event::Finish { proc, which, commits, stop } => self.finish(at, proc, which, commits, stop),
            Event::Cover { proc, ago, stop } => self.cover(at, proc, ago, stop),
            Event::Churn { proc, count } => self.churn(at, proc, count),
            Event::Recreate { proc, stop } => self.recreate(at, proc, stop),
            Event::Drop { database } => self.drop_extension(at, database),
            Event::Accept { proc, stop } => self.accept(at, proc, stop),
            Event::StartAbove { proc, ahead, stop } => self.start_above(at, proc, ahead, stop),
            Event::Ask { proc, stop } => drop(self.ask(at, proc, stop)),
            Event::Publish { proc, stop } => self.publish(at, proc, stop),
            Event::Pass { by } => {
                self.pass(by);
                tell!(self.world(), "{} pass", seconds(by));
            }
            Event::Step { by } => self.step_clock(at, by, &stepped(by)),
            Event::SetRight => {
                let offset = self.world().machines[at].offset();
                self.step_clock(at, -offset, "is set right");
            }
            Event::ToUsed { which, by, waits } => self.to_used(at, which, by, waits),
            Event::Stop { ending } => self.stop_server(at, ending),
            Event::Start => self.start_server(at),
            Event::Restart { node } => {
                self.stop_server(at, Ending::InOrder);
                self.renumber(at, node);
                self.start_server(at);
            }
            Event::DiskFails(fails) => {
                let mut world = self.world();
                world.machines[at].disk_fails = fails;
                tell!(world, "server {}: the disk {}", world.name(at), if fails { "fails" } else { "has room" });
            }
            Event::SaveFile => self.save_file(at),
            Event::RestoreFile => self.restore_file(at),
            Event::LoseFile { ending } => self.lose_file(at, ending),
            Event::Upgrade => self.upgrade(at),
            Event::NewDatabase { database } => self.new_database(at, database),
            Event::Replay { most } => self.replay(at, most),
            Event::LeaveOut { numbers } => self.world().machines[at].left_out = numbers,
            Event::Promote => self.promote(at),
            Event::Follow { source, node, keeps_file } => self.follow(at, source, node, keeps_file),
        }
    }
}
