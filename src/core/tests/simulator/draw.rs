//! Draws stories: which events happen, and how often.

use crate::layouts::{DAY, HOUR, KINDS, SECOND, SNO, TEN};
use crate::machine::SLOTS;
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
        self.below(SLOTS)
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
        let proc = self.proc();
        match self.below(39) {
            0..16 => self.make(proc),
            16..24 => Event::Pass(self.pick(&STEPS[..8]) * SECOND / 4),
            24 | 25 => Act::Connect(self.below(DATABASES)).by(proc),
            26 => Event::Session(proc, Act::Exit, self.stop()),
            27 | 28 => Event::Session(proc, Act::GoOn, self.stop()),
            29 => Event::ToUsed { which: self.below(20), by: -(self.below(2) as i64), waits: !self.is(3) },
            30 => Event::Step(if self.is(2) { self.length() } else { -self.length() }),
            _ => self.rare(),
        }
    }

    /// A rare event.
    pub fn rare(&mut self) -> Event {
        let proc = self.proc();
        match self.below(32) {
            0..3 => Act::Begin.by(proc),
            3..5 => Event::Session(proc, Act::End(!self.is(3)), self.stop()),
            5..8 => Event::Session(proc, Act::Accept, self.stop()),
            8 | 9 => {
                let ahead = if self.is(2) { self.length() } else { self.below(9) as i64 * SECOND / 4 };
                Event::Session(proc, Act::StartAbove(ahead), self.stop())
            }
            10 => self.tailing(),
            11 => Event::Session(proc, Act::Recreate, self.stop()),
            12 => Act::Kill.by(proc),
            13..16 => Event::SetRight,
            16..20 => Event::Step(if self.is(2) { self.length() } else { -self.length() }),
            20 => Event::Stop(self.ending()),
            21..23 => Event::Start,
            23..25 => Event::Restart(self.pick(&NODES)),
            25 => Event::DiskFails(self.is(3)),
            26 => Event::SaveFile,
            27 => Event::RestoreFile,
            28 => Event::LoseFile(self.ending()),
            29 => Event::NewDatabase(self.below(DATABASES)),
            30 => Act::MakeOfMany.by(proc),
            _ if self.is(3) => Event::Upgrade,
            _ if self.is(3) => Event::Drop(self.below(DATABASES)),
            _ => Event::DiskFails(false),
        }
    }

    /// An event of sessions that write rows, or that read them by watermarks.
    pub fn tailing(&mut self) -> Event {
        let proc = self.proc();
        match self.below(24) {
            0..5 => Event::Session(proc, Act::Ask, self.stop()),
            5 => Event::Session(proc, Act::Publish, self.stop()),
            6..8 => Act::Look.by(proc),
            8..10 => Act::Begin.by(proc),
            10 => Act::Write.by(proc),
            11..14 => Event::Session(proc, Act::End(!self.is(4)), self.stop()),
            14..16 => Event::Session(proc, Act::Prepare, self.stop()),
            16..18 => Event::Session(proc, Act::Finish { which: self.below(2), commits: !self.is(4) }, self.stop()),
            18 => Act::Churn(if self.is(3) { 17 + self.below(12) } else { 1 + self.below(3) }).by(proc),
            19..21 => Event::Session(proc, Act::Cover(self.ago()), self.stop()),
            21 => Event::Step(-(self.below(3000) as i64)),
            22 => Event::Session(proc, Act::Make(Making { kind: MICROSECOND, count: 1, waits: false }), self.stop()),
            _ => Event::Session(proc, Act::GoOn, self.stop()),
        }
    }

    /// An event of a reader on a standby.
    fn on_standby(&mut self) -> Event {
        let proc = self.proc();
        match self.below(6) {
            0 => Act::Look.by(proc),
            1 => Act::End(true).by(proc),
            2 => Event::Session(proc, Act::GoOn, self.stop()),
            _ => Event::Session(proc, Act::Ask, self.stop()),
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

    /// An event between servers.
    fn between(&mut self) -> Event {
        match self.below(8) {
            0..5 => Event::Replay(if self.is(2) { usize::MAX } else { self.below(4) }),
            5 => Event::Promote,
            _ => self.follow(0),
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
                        0 => match self.between() {
                            Event::Follow { node, keeps_file, .. } => {
                                Event::Follow { source: self.below(SERVERS), node, keeps_file }
                            }
                            event => event,
                        },
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
                1 if tails && self.is(4) => (1, self.on_standby()),
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
            events.push((1, self.on_standby()));
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
                let event = if self.is(4) { self.between() } else { self.use_of() };
                events.push((at, event));
            }
        }
    }
}
