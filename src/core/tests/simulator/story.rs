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

/// An event of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// An act of the session in a proc, which may stop at one of its points.
    Session(usize, Act, Option<u16>),
    Pass(i64),
    Step(i64),
    SetRight,
    ToUsed {
        which: usize,
        by: i64,
        waits: bool,
    },
    Stop(Ending),
    Start,
    /// Under this number.
    Restart((u32, u32)),
    DiskFails(bool),
    SaveFile,
    RestoreFile,
    LoseFile(Ending),
    Upgrade,
    NewDatabase(usize),
    Drop(usize),
    /// At most so many records.
    Replay(usize),
    /// The next promotion leaves out so many numbers of timelines.
    LeaveOut(u32),
    Promote,
    Follow {
        source: usize,
        node: (u32, u32),
        keeps_file: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Act {
    Make(Making),
    MakeOfMany,
    GoOn,
    Connect(usize),
    Exit,
    Kill,
    Begin,
    /// It commits, or rolls back.
    End(bool),
    Write,
    Look,
    Prepare,
    Finish {
        which: usize,
        commits: bool,
    },
    /// An ID that was made so long ago.
    Cover(i64),
    Churn(usize),
    Recreate,
    Accept,
    /// So far ahead of the clock.
    StartAbove(i64),
    Ask,
    Publish,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Making {
    pub kind: usize,
    pub count: usize,
    pub waits: bool,
}

impl Act {
    /// An act of a session that does not stop.
    pub fn by(self, proc: usize) -> Event {
        Event::Session(proc, self, None)
    }
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
            Self::Session(proc, ..) => Needs::Session(proc),
            Self::Restart(_) | Self::NewDatabase(_) | Self::Drop(_) | Self::Upgrade | Self::RestoreFile => {
                Needs::AllSessions
            }
            Self::Stop(Ending::InOrder) | Self::LoseFile(Ending::InOrder) => Needs::AllSessions,
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
    /// Lets a session act.
    fn session_acts(self: &Arc<Self>, at: usize, proc: usize, act: Act, stop: Option<u16>) {
        match act {
            Act::Make(Making { kind, count, waits }) => {
                self.make((at, proc), (kind, count), waits, stop);
            }
            Act::MakeOfMany => {
                for kind in 0..KINDS {
                    self.make((at, proc), (kind, 1), false, None);
                }
            }
            Act::GoOn => {}
            Act::Connect(database) => {
                self.exit(at, proc, None);
                self.world().machines[at].database[proc] = database;
            }
            // An idle session that is killed exits as usual.
            Act::Exit | Act::Kill => self.exit(at, proc, stop),
            Act::Begin => self.begin_transaction(at, proc),
            Act::End(commits) => self.commit_or_roll_back(at, proc, commits, stop),
            Act::Write => self.write(at, proc),
            Act::Look => self.look(at, proc),
            Act::Prepare => self.prepare(at, proc, stop),
            Act::Finish { which, commits } => self.finish(at, proc, which, commits, stop),
            Act::Cover(ago) => self.cover(at, proc, ago, stop),
            Act::Churn(count) => self.churn(at, proc, count),
            Act::Recreate => self.recreate(at, proc, stop),
            Act::Accept => self.accept(at, proc, stop),
            Act::StartAbove(ahead) => self.start_above(at, proc, ahead, stop),
            Act::Ask => drop(self.ask(at, proc, stop)),
            Act::Publish => self.publish(at, proc, stop),
        }
    }

    /// Lets an event happen.
    pub fn event(self: &Arc<Self>, at: usize, event: Event) {
        match event {
            Event::Session(proc, act, stop) => self.session_acts(at, proc, act, stop),
            Event::Pass(by) => {
                self.pass(by);
                tell!(self.world(), "{} pass", seconds(by));
            }
            Event::Step(by) => self.step_clock(at, by, &stepped(by)),
            Event::SetRight => {
                let offset = self.world().machines[at].offset();
                self.step_clock(at, -offset, "is set right");
            }
            Event::ToUsed { which, by, waits } => self.to_used(at, which, by, waits),
            Event::Stop(ending) => self.stop_server(at, ending),
            Event::Start => self.start_server(at),
            Event::Restart(node) => {
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
            Event::LoseFile(ending) => self.lose_file(at, ending),
            Event::Upgrade => self.upgrade(at),
            Event::NewDatabase(database) => self.new_database(at, database),
            Event::Drop(database) => self.drop_extension(at, database),
            Event::Replay(most) => self.replay(at, most),
            Event::LeaveOut(numbers) => self.world().machines[at].left_out = numbers,
            Event::Promote => self.promote(at),
            Event::Follow { source, node, keeps_file } => self.follow(at, source, node, keeps_file),
        }
    }
}
