//! Draws stories of new primaries: several in a row, restarts soon after, and the first steps of each start.

use std::mem::discriminant;

use crate::draw::{Chance, NODES};
use crate::layouts::SECOND;
use crate::machine::PROCS;
use crate::play::SERVERS;
use crate::story::{Act, Event, Making, Story};
use crate::tailing::MICROSECOND;
use crate::wal::DATABASES;

impl Chance {
    /// A short time, or none.
    pub fn moment(&mut self) -> Event {
        Event::Pass(self.below(6) as i64 * SECOND / 10)
    }

    /// A server stops and starts at once, perhaps under another number.
    fn quick_restart(&mut self, events: &mut Vec<(usize, Event)>, at: usize) {
        if self.is(2) {
            let node = if self.is(2) { (0, 2) } else { self.pick(&NODES) };
            events.push((at, Event::Restart(node)));
        } else {
            events.extend([(at, Event::Stop(self.ending())), (at, Event::Start)]);
        }
    }

    /// The first steps after a start. One session stops in the middle of them.
    fn first_steps(&mut self, events: &mut Vec<(usize, Event)>, at: usize) {
        let proc = self.proc();
        let stop = Some(1 + self.below(40) as u16);
        let stopped = match self.below(6) {
            0 | 1 => Event::Session(proc, Act::Ask, stop),
            2 => Event::Session(proc, Act::Make(Making { kind: 0, count: 1, waits: false }), stop),
            3 => Event::Session(proc, Act::Recreate, stop),
            4 => Event::Session(proc, Act::StartAbove(self.below(9) as i64 * SECOND / 4), stop),
            _ => Event::Session(proc, Act::Accept, stop),
        };
        events.push((at, stopped));
        for _ in 0..1 + self.below(4) {
            let proc = 1 - proc;
            let event = match self.below(6) {
                0..2 => Act::Ask.by(proc),
                2 => Act::Finish { which: self.below(2), commits: !self.is(4) }.by(proc),
                3 => Act::Connect(self.below(DATABASES)).by(proc),
                _ => self.make(proc),
            };
            events.push((at, event));
        }
        events.push((at, Act::GoOn.by(proc)));
    }

    /// A transaction is prepared.
    fn prepared(&mut self, events: &mut Vec<(usize, Event)>, at: usize) {
        let proc = self.proc();
        let make = Act::Make(Making { kind: MICROSECOND, count: 1, waits: false }).by(proc);
        events.extend([Act::Begin.by(proc), make, Act::Prepare.by(proc)].map(|event| (at, event)));
    }

    /// Events before another server takes over: use, the loss of a page, and calls of flake_start_above.
    fn before(&mut self, events: &mut Vec<(usize, Event)>, at: usize, most: usize) {
        self.used(events, at, most);
        if self.is(3) {
            events.push((at, Event::Drop(self.below(DATABASES))));
        }
        if self.is(4) {
            let ahead = if self.is(2) { self.length() } else { self.below(9) as i64 * SECOND / 4 };
            events.push((at, Act::StartAbove(ahead).by(self.proc())));
        }
        if self.is(3) {
            self.prepared(events, at);
        }
        if self.is(2) {
            events.push((at, Event::Pass(4 * SECOND)));
        }
    }

    /// One server after another is promoted. The earlier ones may still run, and are used too.
    fn in_a_row(&mut self, events: &mut Vec<(usize, Event)>) {
        let mut primary = 0;
        for _ in 0..2 + self.below(3) {
            let next = (primary + 1 + self.below(SERVERS - 1)) % SERVERS;
            let follow = self.follow(primary);
            events.extend([(next, follow), (next, Event::Replay(usize::MAX))]);
            if self.is(4) {
                let proc = self.proc();
                events.push((primary, self.make(proc)));
            }
            if self.is(4) {
                events.push((next, self.named("leave-out")));
            }
            events.push((next, Event::Promote));
            let proc = self.proc();
            match self.below(4) {
                0 | 1 => events.push((next, Act::Ask.by(proc))),
                2 => events.push((next, self.make(proc))),
                _ => {}
            }
            if self.is(3) {
                events.push((next, self.moment()));
            }
            if self.is(6) {
                self.quick_restart(events, next);
            }
            primary = next;
        }
    }

    /// A server is restarted several times, under other numbers too, and used by two sessions at once.
    fn of_starts(&mut self, events: &mut Vec<(usize, Event)>) {
        self.before(events, 0, 10);
        for _ in 0..1 + self.below(4) {
            if self.is(2) {
                self.prepared(events, 0);
            }
            self.quick_restart(events, 0);
            if self.is(2) {
                self.first_steps(events, 0);
            }
            self.before(events, 0, 6);
        }
    }

    /// A primary that was idle in one database is used there again beside a new primary. The new one first creates the extension in
    /// another database, where the new page names no other server, and is restarted at once.
    fn beside_an_idle_primary(&mut self, events: &mut Vec<(usize, Event)>) {
        let (created, other) = if self.is(2) { (0, 1) } else { (1, 0) };
        let proc = self.proc();
        self.comes_to(events, 0, other);
        events.push((0, self.make(proc)));
        events.push((0, Event::Drop(created)));
        if self.is(3) {
            self.before(events, 0, 4);
        }
        let node = if self.is(4) { self.pick(&NODES) } else { (0, 2) };
        events.push((1, Event::Follow { source: 0, node, keeps_file: false }));
        events.push((0, Event::Pass((1 + self.below(8) as i64) * SECOND)));
        events.extend([(1, Event::Replay(usize::MAX)), (1, Event::Promote)]);
        self.comes_to(events, 1, created);
        let recreate = Event::Session(proc, Act::Recreate, if self.is(2) { None } else { self.stop() });
        events.extend([recreate, Act::End(true).by(proc)].map(|event| (1, event)));
        let first = if self.is(4) { Act::Ask.by(proc) } else { self.make(proc) };
        events.push((1, first));
        if self.is(3) {
            events.push((1, self.moment()));
        }
        self.quick_restart(events, 1);
        self.comes_to(events, 1, other);
        for _ in 0..2 + self.below(10) {
            let at = self.below(2);
            let proc = self.proc();
            let event = match self.below(12) {
                0..8 => self.make(proc),
                8 | 9 => self.moment(),
                10 => self.use_of(),
                _ => Act::Connect(self.below(DATABASES)).by(proc),
            };
            events.push((at, event));
        }
    }

    /// All sessions of a server connect to a database.
    fn comes_to(&self, events: &mut Vec<(usize, Event)>, at: usize, database: usize) {
        events.extend((0..PROCS).map(|proc| (at, Act::Connect(database).by(proc))));
    }

    pub fn of_takeovers(&mut self, events: &mut Vec<(usize, Event)>) {
        match self.below(25) {
            0..5 => {
                self.used(events, 0, 4);
                return self.in_a_row(events);
            }
            5..9 => return self.of_starts(events),
            9..13 => return self.beside_an_idle_primary(events),
            _ => {}
        }
        self.before(events, 0, 8);
        let same = Event::Follow { source: 0, node: (0, 2), keeps_file: self.is(4) };
        let follow = if self.is(2) { same } else { self.follow(0) };
        events.push((1, follow));
        self.before(events, 0, 6);
        events.push((1, Event::Replay(if self.is(3) { self.below(6) } else { usize::MAX })));
        events.push((1, Event::Promote));
        for _ in 0..3 + self.below(20) {
            let at = if self.is(4) { 2 } else { self.below(2) };
            let proc = self.proc();
            match self.below(24) {
                0..8 => events.push((at, self.make(proc))),
                8..11 => events.push((at, Act::Connect(self.below(DATABASES)).by(proc))),
                11 => events.push((at, Event::Session(proc, Act::Recreate, self.stop()))),
                12 => {
                    let end = Act::End(true).by(proc);
                    events.extend([(at, Act::Recreate.by(proc)), (at, end)]);
                }
                13..16 => events.push((at, self.moment())),
                16 | 17 => self.quick_restart(events, at),
                18 => self.first_steps(events, at),
                19 => events.push((at, self.tailing())),
                20 => events.push((at, self.rare())),
                21 => {
                    let source = self.below(2);
                    let follow = self.follow(source);
                    events.extend([(2, follow), (2, Event::Replay(usize::MAX))]);
                }
                22 => events.extend([(2, Event::Replay(usize::MAX)), (2, Event::Promote)]),
                _ => events.push((at, Act::MakeOfMany.by(proc))),
            }
        }
    }

    /// Adds events of three kinds to a story, so that every kind meets every other one.
    pub fn with_some_kinds(&mut self, story: Story) -> Story {
        let all: Vec<&str> = ALL.split_whitespace().collect();
        let names = [0; 3].map(|_| self.pick(&all));
        let mut events = Vec::new();
        for (at, event) in story.events.iter().copied() {
            events.push((at, event));
            // Often several of them follow each other.
            while self.is(3) {
                let name = self.pick(&names);
                let at = if self.is(3) { self.below(SERVERS) } else { at };
                events.push((at, self.named(name)));
            }
        }
        Story { events, ..story }
    }
}

/// All events.
const ALL: &str = "make all go connect exit kill begin end write look prepare finish cover churn recreate drop accept above-used ask publish \
    moment step right used stop start restart disk save restore lose upgrade create replay promote leave-out follow";

/// Checks that every pair of consecutive events is drawn, and counts the triples.
#[test]
fn every_pair_of_events_is_drawn() {
    let mut chance = Chance(1);
    let kind_of = |event: &Event| match event {
        Event::Session(_, act, _) => (discriminant(event), Some(discriminant(act))),
        _ => (discriminant(event), None),
    };
    let kinds: Vec<_> = ALL.split_whitespace().map(|name| kind_of(&chance.named(name))).collect();
    let number = |event: &Event| kinds.iter().position(|kind| *kind == kind_of(event)).unwrap();
    let mut pairs = vec![0u32; kinds.len().pow(2)];
    let mut triples = vec![0u32; kinds.len().pow(3)];
    for seed in 0..30_000 {
        let events: Vec<usize> = Chance(seed).story().events.iter().map(|(_, event)| number(event)).collect();
        events.windows(2).for_each(|two| pairs[two[0] * kinds.len() + two[1]] += 1);
        events.windows(3).for_each(|three| {
            triples[(three[0] * kinds.len() + three[1]) * kinds.len() + three[2]] += 1;
        });
    }
    let rarest = pairs.iter().min().unwrap();
    let missing = triples.iter().filter(|&&count| count == 0).count();
    println!("the rarest pair of events is drawn {rarest} times; of {} triples {missing} are not drawn", triples.len());
    assert!(*rarest >= 40, "a pair is drawn {rarest} times");
    assert!(missing * 10 <= triples.len(), "{missing} triples are not drawn");
}
