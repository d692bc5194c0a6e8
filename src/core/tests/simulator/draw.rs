//! Draws stories: which events happen, and how often.

use crate::layouts::{DAY, HOUR, KINDS, SECOND, SNO, TEN};
use crate::machine::PROCS;
use crate::operator::Ending;
use crate::play::SERVERS;
use crate::story::{Act, Event, Making, Story};
use crate::tailing::MICROSECOND;
use crate::wal::DATABASES;

/// Draws random numbers by Vigna's splitmix64.
pub struct Chance(pub u64);

pub const NODES: [(u32, u32); 4] = [(0, 2), (1, 2), (0, 1), (0, 2)];
/// By how much clocks are set, in quarters of a second.
const STEPS: [i64; 12] = [1, 2, 4, 7, 8, 9, 12, 20, 30, 60, 200, 800];

/// Events of ordinary use, each with how often it is drawn beside the others.
const USED: &str = "make*16 pass*8 connect*2 exit go*2 used step";
const RARE: &str = "begin*9 end*6 accept*9 above*6 recreate*3 kill*3 right*9 step*12 stop*3 start*6 restart*6 disk*5 save*3 restore*3 \
    lose*3 create*3 all*3 upgrade drop";
/// Events of sessions that write rows, or that read them by watermarks.
const TAILING: &str = "ask*5 publish look*2 begin*2 write end*3 prepare*2 finish*2 churn cover*2 back micro go";
/// Events of a reader on a standby.
const ON_STANDBY: &str = "look end go ask*3";
/// Events between servers.
const BETWEEN: &str = "replay*5 promote follow*2";

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn is(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Draws the point at which a session stops, if it does.
    pub fn stop(&mut self) -> Option<u16> {
        let most = if self.is(2) { 8 } else { 64 };
        self.is(6).then(|| 1 + self.below(most) as u16)
    }

    pub fn proc(&mut self) -> usize {
        self.below(PROCS)
    }

    pub fn length(&mut self) -> i64 {
        match self.below(8) {
            0 => self.below(5000) as i64,
            1 => HOUR / 2 * (1 + self.below(3) as i64),
            _ => self.pick(&STEPS) * SECOND / 4,
        }
    }

    pub fn ending(&mut self) -> Ending {
        match self.below(4) {
            0 | 1 => Ending::InOrder,
            2 => Ending::Crash,
            _ => Ending::Reboot(self.next() & self.next()),
        }
    }

    pub fn make(&mut self, proc: usize) -> Event {
        let kind = match self.below(16) {
            0..8 => 0,
            8 | 9 => 1,
            10 | 11 => 2,
            12 => 3,
            13 => self.pick(&[DAY, TEN, TEN]),
            _ => SNO + self.below(KINDS - SNO),
        };
        let count = if self.is(3) { 1 + self.below(8) } else { 1 };
        Event::Session(proc, Act::Make(Making { kind, count, waits: self.is(4) }), self.stop())
    }

    /// An event of ordinary use.
    pub fn use_of(&mut self) -> Event {
        if self.below(39) > 30 { self.rare() } else { self.one_of(USED) }
    }

    pub fn rare(&mut self) -> Event {
        if self.is(32) { self.tailing() } else { self.one_of(RARE) }
    }

    /// An event of sessions that write rows, or that read them by watermarks.
    pub fn tailing(&mut self) -> Event {
        self.one_of(TAILING)
    }

    /// One of the events with these names; a name with a number is drawn so many times as often.
    pub fn one_of(&mut self, names: &str) -> Event {
        let parts = || names.split_whitespace().map(|name| name.split_once('*').unwrap_or((name, "1")));
        let times = |times: &str| times.parse::<usize>().unwrap();
        let mut which = self.below(parts().map(|(_, count)| times(count)).sum());
        for (name, count) in parts() {
            if which < times(count) {
                return self.named(name);
            }
            which -= times(count);
        }
        unreachable!("it is below the sum")
    }

    /// An event with this name.
    pub fn named(&mut self, name: &str) -> Event {
        let (proc, database) = (self.proc(), self.below(DATABASES));
        let act = match name {
            "make" => return self.make(proc),
            "all" => return Act::MakeOfMany.by(proc),
            "connect" => return Act::Connect(database).by(proc),
            "kill" => return Act::Kill.by(proc),
            "begin" => return Act::Begin.by(proc),
            "write" => return Act::Write.by(proc),
            "look" => return Act::Look.by(proc),
            "churn" => return Act::Churn(if self.is(6) { 17 + self.below(12) } else { 1 + self.below(3) }).by(proc),
            "micro" => Act::Make(Making { kind: MICROSECOND, count: 1, waits: false }),
            "go" => Act::GoOn,
            "exit" => Act::Exit,
            "end" => Act::End(!self.is(4)),
            "prepare" => Act::Prepare,
            "finish" => Act::Finish { which: self.below(2), commits: !self.is(4) },
            "cover" => Act::Cover(self.ago()),
            "recreate" => Act::Recreate,
            "accept" => Act::Accept,
            "above" => Act::StartAbove(if self.is(2) { self.length() } else { self.below(9) as i64 * SECOND / 4 }),
            "above-used" => Act::StartAbove(-self.length()),
            "ask" => Act::Ask,
            "publish" => Act::Publish,
            _ => return self.named_of_server(name, database),
        };
        Event::Session(proc, act, self.stop())
    }

    fn named_of_server(&mut self, name: &str, database: usize) -> Event {
        match name {
            "pass" => Event::Pass(self.pick(&STEPS[..8]) * SECOND / 4),
            "moment" => self.moment(),
            "step" => Event::Step(if self.is(2) { self.length() } else { -self.length() }),
            "back" => Event::Step(-(self.below(3000) as i64)),
            "right" => Event::SetRight,
            "used" => Event::ToUsed { which: self.below(20), by: -(self.below(2) as i64), waits: !self.is(3) },
            "stop" => Event::Stop(self.ending()),
            "start" => Event::Start,
            "restart" => Event::Restart(self.pick(&NODES)),
            "disk" => Event::DiskFails(self.is(3)),
            "save" => Event::SaveFile,
            "restore" => Event::RestoreFile,
            "lose" => Event::LoseFile(self.ending()),
            "upgrade" => Event::Upgrade,
            "create" => Event::NewDatabase(database),
            "drop" => Event::Drop(database),
            "replay" => Event::Replay(if self.is(2) { usize::MAX } else { self.below(4) }),
            "promote" => Event::Promote,
            "leave-out" => Event::LeaveOut(1 + self.below(4) as u32),
            "follow" => {
                let source = self.below(SERVERS);
                self.follow(source)
            }
            _ => panic!("there is no event {name}"),
        }
    }

    /// How long ago a covered ID was made.
    pub fn ago(&mut self) -> i64 {
        match self.below(4) {
            0 => self.length(),
            1 => self.below(100) as i64,
            _ => self.below(3000) as i64,
        }
    }

    pub fn follow(&mut self, source: usize) -> Event {
        let own_number = self.is(3);
        let node = if own_number { self.pick(&NODES) } else { (0, 2) };
        Event::Follow { source, node, keeps_file: self.is(3) }
    }

    /// Draws a story.
    pub fn story(&mut self) -> Story {
        let mut events = Vec::new();
        match self.below(10) {
            8 | 9 => self.of_long_ticks(&mut events),
            6 | 7 => self.of_takeovers(&mut events),
            0 => {
                for _ in 0..10 + self.below(80) {
                    let at = if self.is(2) { 0 } else { self.below(SERVERS) };
                    let event = match self.below(5) {
                        0 => self.one_of(BETWEEN),
                        1 => self.rare(),
                        _ => self.use_of(),
                    };
                    events.push((at, event));
                }
            }
            1 => self.of_files(&mut events),
            2 => self.of_tailers(&mut events),
            _ => self.of_failovers(&mut events),
        }
        let any_time = if self.is(3) { self.next() | 1 } else { 0 };
        let story = Story { events, any_time };
        if self.is(2) { self.with_some_kinds(story) } else { story }
    }

    /// Rows are written and read on one server, which stops from time to time.
    fn of_tailers(&mut self, events: &mut Vec<(usize, Event)>) {
        for _ in 0..10 + self.below(60) {
            let event = match self.below(16) {
                0..9 => self.tailing(),
                9..14 => self.use_of(),
                14 => Event::Pass(self.below(5000) as i64),
                _ if self.is(3) => Event::Restart((0, 2)),
                _ if self.is(2) => Event::Stop(self.ending()),
                _ => Event::Start,
            };
            events.push((0, event));
        }
    }

    pub fn used(&mut self, events: &mut Vec<(usize, Event)>, at: usize, most: usize) {
        for _ in 0..self.below(most) {
            events.push((at, self.use_of()));
        }
    }

    /// One server's file is lost, copied and restored, and its number changes.
    fn of_files(&mut self, events: &mut Vec<(usize, Event)>) {
        self.used(events, 0, 15);
        if self.is(2) {
            events.push((0, Event::SaveFile));
        }
        self.used(events, 0, 25);
        for _ in 0..1 + self.below(4) {
            let event = match self.below(6) {
                0 => Event::LoseFile(self.ending()),
                1 | 2 => Event::RestoreFile,
                3 => Event::Stop(self.ending()),
                _ => Event::Restart(self.pick(&NODES)),
            };
            events.extend([(0, event), (0, Event::Start)]);
            if self.is(2) {
                events.push((0, Event::ToUsed { which: self.below(20), by: -1, waits: self.is(2) }));
            }
            self.used(events, 0, 15);
        }
    }

    /// A standby is created, and promoted while the old primary may still run.
    fn of_failovers(&mut self, events: &mut Vec<(usize, Event)>) {
        let tails = self.is(2);
        self.used(events, 0, 10);
        let follow = self.follow(0);
        events.push((1, follow));
        if self.is(4) {
            let follow = self.follow(0);
            events.push((2, follow));
        }
        if self.is(3) {
            events.push((1, Event::Step(-self.length())));
        }
        for _ in 0..self.below(25) {
            let event = match self.below(4) {
                0 => (1, Event::Replay(self.below(6))),
                1 if tails && self.is(4) => (1, self.one_of(ON_STANDBY)),
                1 if tails && self.is(4) => (0, Event::Session(self.proc(), Act::Publish, self.stop())),
                1 if tails => (0, self.tailing()),
                _ => (0, self.use_of()),
            };
            events.push(event);
            if self.is(3) {
                events.push((1, Event::Replay(usize::MAX)));
            }
        }
        // The standby does not replay the last WAL of the primary.
        for _ in 0..self.below(8) {
            let pass = Event::Pass((1 + self.below(3) as i64) * SECOND / 4);
            let proc = self.proc();
            events.extend([(0, pass), (0, self.make(proc))]);
            if self.is(3) {
                events.push((1, Event::Replay(1)));
            }
        }
        if tails {
            events.push((1, self.one_of(ON_STANDBY)));
        }
        events.push((1, Event::Promote));
        for _ in 0..self.below(12) {
            let at = self.below(2);
            let event = if tails && self.is(3) { self.tailing() } else { self.use_of() };
            events.push((at, event));
        }
        events.push((0, Event::Stop(self.ending())));
        for _ in 0..1 + self.below(3) {
            if self.is(2) {
                events.push((1, Event::ToUsed { which: self.below(20), by: -1, waits: !self.is(3) }));
            }
            self.used(events, 1, 12);
            if self.is(4) {
                events.push((1, Event::LoseFile(self.ending())));
            }
        }
        if self.is(3) {
            let follow = self.follow(1);
            events.push((0, follow));
            for _ in 0..self.below(20) {
                let at = self.below(2);
                let event = if self.is(4) { self.one_of(BETWEEN) } else { self.use_of() };
                events.push((at, event));
            }
        }
    }
}
