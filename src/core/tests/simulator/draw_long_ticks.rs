//! Draws stories of long ticks: sessions of several databases use one tick in turn, which may have begun before a file was lost, a
//! clock was set or a server took over.

use crate::draw::{Chance, NODES};
use crate::layouts::{DAY, HOUR, SECOND, TEN};
use crate::story::{Act, Event, Making};
use crate::wal::DATABASES;

type Events = Vec<(usize, Event)>;

impl Chance {
    /// Draws a story of long ticks. In `unit`, the clock moves a small part of a tick, or from one tick to the next.
    pub fn of_long_ticks(&mut self, events: &mut Events) {
        let kind = if self.is(2) { DAY } else { TEN };
        let unit = if kind == DAY { 10 * SECOND } else { SECOND };
        self.used(events, 0, 3);
        if self.is(2) {
            events.push((0, Act::Make(Making { kind: 1, count: 1, waits: true }).by(0)));
        }
        let has_standby = self.is(3);
        if has_standby {
            let follow = self.follow(0);
            events.push((1, follow));
        }
        // The story begins with a tick of a day, in which no ID can be made, because the server knows nothing of the time before.
        let tick = if kind == DAY { 24 * HOUR } else { 20 * SECOND };
        let eve = tick - (1 + self.below(8) as i64) * unit;
        events.push((0, Event::Pass(eve)));
        for _ in 0..1 + self.below(3) {
            if self.is(3) {
                // A clock was ahead in one database, and the file that knows is lost before a session comes to another database.
                let connect = Act::Connect(self.below(DATABASES)).by(0);
                let ahead = Event::Step((1 + self.below(16) as i64) * unit);
                let lost = Event::LoseFile(self.ending());
                let to = Act::Connect(self.below(DATABASES)).by(0);
                let make = self.make_in_long_tick(kind);
                events.extend([connect, ahead, make, Event::SetRight, to, lost].map(|event| (0, event)));
            }
            for _ in 0..2 + self.below(10) {
                let at = usize::from(has_standby && self.is(4));
                self.in_a_long_tick(events, at, kind, unit);
            }
            events.push((0, Event::Pass((1 + self.below(8) as i64) * unit)));
        }
        if has_standby {
            events.extend([(1, Event::Replay(usize::MAX)), (1, Event::Promote)]);
            for _ in 0..2 + self.below(12) {
                let at = usize::from(!self.is(4));
                self.in_a_long_tick(events, at, kind, unit);
            }
        }
    }

    fn make_in_long_tick(&mut self, kind: usize) -> Event {
        Act::Make(Making { kind, count: 1 + self.below(8), waits: false }).by(0)
    }

    /// Events of a server within a long tick, or shortly before it.
    fn in_a_long_tick(&mut self, events: &mut Events, at: usize, kind: usize, unit: i64) {
        let proc = usize::from(self.is(4));
        let some = 1 + self.below(8) as i64;
        let make = Act::Make(Making { kind, count: some as usize, waits: self.is(4) }).by(proc);
        let connect = Act::Connect(self.below(DATABASES)).by(proc);
        let add = |events: &mut Events, some: &[Event]| events.extend(some.iter().map(|event| (at, *event)));
        match self.below(24) {
            0..3 => {
                add(events, &[Event::Session(proc, Act::Make(Making { kind, count: 1, waits: false }), self.stop())])
            }
            3..6 => add(events, &[make]),
            6..12 => add(events, &[connect, make]),
            // The clock is ahead for a moment.
            12..15 => add(events, &[Event::Step(2 * some * unit), make, Event::SetRight]),
            15 => add(events, &[Event::Step(if self.is(2) { some } else { -some } * unit)]),
            16 => add(events, &[Event::SetRight]),
            17 | 18 => add(events, &[Event::LoseFile(self.ending())]),
            19 => add(events, &[if self.is(2) { Event::SaveFile } else { Event::RestoreFile }]),
            20 => {
                let node = if self.is(2) { (0, 2) } else { self.pick(&NODES) };
                add(events, &[Event::Restart(node)]);
            }
            21 => add(events, &[Event::Pass(some * unit / 2)]),
            22 => add(events, &[Act::Make(Making { kind: 1, count: 1, waits: true }).by(proc)]),
            _ if self.is(3) => add(events, &[Event::Replay(self.below(6))]),
            _ => add(events, &[self.use_of()]),
        }
    }
}
