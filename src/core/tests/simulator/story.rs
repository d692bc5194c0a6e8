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

/// An event of a server, or of its session in a slot, which may stop at one of its points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    Make {
        slot: usize,
        kind: usize,
        count: usize,
        waits: bool,
        stop: Option<u16>,
    },
    MakeOfMany {
        slot: usize,
    },
    GoOn {
        slot: usize,
        stop: Option<u16>,
    },
    Connect {
        slot: usize,
        database: usize,
    },
    Exit {
        slot: usize,
        stop: Option<u16>,
    },
    Kill {
        slot: usize,
    },
    Begin {
        slot: usize,
    },
    End {
        slot: usize,
        commits: bool,
        stop: Option<u16>,
    },
    Write {
        slot: usize,
    },
    Look {
        slot: usize,
    },
    Prepare {
        slot: usize,
        stop: Option<u16>,
    },
    Finish {
        slot: usize,
        which: usize,
        commits: bool,
        stop: Option<u16>,
    },
    Cover {
        slot: usize,
        ago: i64,
        stop: Option<u16>,
    },
    Churn {
        slot: usize,
        count: usize,
    },
    Recreate {
        slot: usize,
        stop: Option<u16>,
    },
    Drop {
        database: usize,
    },
    Accept {
        slot: usize,
        stop: Option<u16>,
    },
    StartAbove {
        slot: usize,
        ahead: i64,
        stop: Option<u16>,
    },
    Ask {
        slot: usize,
        stop: Option<u16>,
    },
    Publish {
        slot: usize,
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
            Self::Make { slot, .. }
            | Self::MakeOfMany { slot }
            | Self::GoOn { slot, .. }
            | Self::Connect { slot, .. }
            | Self::Exit { slot, .. }
            | Self::Kill { slot }
            | Self::Begin { slot }
            | Self::End { slot, .. }
            | Self::Write { slot }
            | Self::Look { slot }
            | Self::Prepare { slot, .. }
            | Self::Finish { slot, .. }
            | Self::Cover { slot, .. }
            | Self::Churn { slot, .. }
            | Self::Recreate { slot, .. }
            | Self::Accept { slot, .. }
            | Self::StartAbove { slot, .. }
            | Self::Ask { slot, .. }
            | Self::Publish { slot, .. } => Needs::Session(slot),
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
            Event::Make { slot, kind, count, waits, stop } => drop(self.make((at, slot), (kind, count), waits, stop)),
            Event::MakeOfMany { slot } => {
                for kind in 0..KINDS {
                    self.make((at, slot), (kind, 1), false, None);
                }
            }
            Event::GoOn { .. } => {}
            Event::Connect { slot, database } => {
                self.exit(at, slot, None);
                self.world().machines[at].database[slot] = database;
            }
            Event::Exit { slot, stop } => self.exit(at, slot, stop),
            // An idle session that is killed exits as usual.
            Event::Kill { slot } => self.exit(at, slot, None),
            Event::Begin { slot } => self.begin_transaction(at, slot),
            Event::End { slot, commits, stop } => self.commit_or_roll_back(at, slot, commits, stop),
            Event::Write { slot } => self.write(at, slot),
            Event::Look { slot } => self.look(at, slot),
            Event::Prepare { slot, stop } => self.prepare(at, slot, stop),
            Event::Finish { slot, which, commits, stop } => self.finish(at, slot, which, commits, stop),
            Event::Cover { slot, ago, stop } => self.cover(at, slot, ago, stop),
            Event::Churn { slot, count } => self.churn(at, slot, count),
            Event::Recreate { slot, stop } => self.recreate(at, slot, stop),
            Event::Drop { database } => self.drop_extension(at, database),
            Event::Accept { slot, stop } => self.accept(at, slot, stop),
            Event::StartAbove { slot, ahead, stop } => self.start_above(at, slot, ahead, stop),
            Event::Ask { slot, stop } => drop(self.ask(at, slot, stop)),
            Event::Publish { slot, stop } => self.publish(at, slot, stop),
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
