//! Draws stories of long ticks: sessions of several databases use one tick in turn, which may have begun before a file was lost, a
//! clock was set or a server took over.

use crate::draw::{Chance, NODES};
use crate::layouts::{DAY, HOUR, SECOND, TEN};
use crate::story::Event;
use crate::wal::DATABASES;

type Events = Vec<(usize, Event)>;

impl Chance {
    /// Draws a story of long ticks. In `unit`, the clock moves a small part of a tick, or from one tick to the next.
    pub fn of_long_ticks(&mut self, events: &mut Events) {
        let kind = if self.is(2) { DAY } else { TEN };
        let unit = if kind == DAY { 10 * SECOND } else { SECOND };
        self.used(events, 0, 3);
        if self.is(2) {
            events.push((0, Event::Make { proc: 0, kind: 1, count: 1, waits: true, stop: None }));
        }
        let has_standby = self.is(3);
        if has_standby {
            let follow = self.follow(0);
            events.push((1, follow));
        }
        // The story begins with a tick of a day, in which no ID can be made, because the server knows nothing of the time before.
        let tick = if kind == DAY { 24 * HOUR } else { 20 * SECOND };
        let eve = tick - (1 + self.below(8) as i64) * unit;
        events.push((0, Event::Pass { by: eve }));
        for _ in 0..1 + self.below(3) {
            if self.is(3) {
                // A clock was ahead in one database, and the file that knows is lost before a session comes to another database.
                let connect = Event::Connect { proc: 0, database: self.below(DATABASES) };
                let ahead = Event::Step { by: (1 + self.below(16) as i64) * unit };
                let lost = Event::LoseFile { ending: self.ending() };
                let to = Event::Connect { proc: 0, database: self.below(DATABASES) };
                let make = self.make_in_long_tick(kind);
                events.extend([connect, ahead, make, Event::SetRight, to, lost].map(|event| (0, event)));
            }
            for _ in 0..2 + self.below(10) {
                let at = usize::from(has_standby && self.is(4));
                self.in_a_long_tick(events, at, kind, unit);
            }
            events.push((0, Event::Pass { by: (1 + self.below(8) as i64) * unit }));
        }
        if has_standby {
            events.extend([(1, Event::Replay { most: usize::MAX }), (1, Event::Promote)]);
            for _ in 0..2 + self.below(12) {
                let at = usize::from(!self.is(4));
                self.in_a_long_tick(events, at, kind, unit);
            }
        }
    }

    fn make_in_long_tick(&mut self, kind: usize) -> Event {
        Event::Make { proc: 0, kind, count: 1 + self.below(8), waits: false, stop: None }
    }

    /// Events of a server within a long tick, or shortly before it.
    fn in_a_long_tick(&mut self, events: &mut Events, at: usize, kind: usize, unit: i64) {
        let proc = usize::from(self.is(4));
        let some = 1 + self.below(8) as i64;
        let make = Event::Make { proc, kind, count: some as usize, waits: self.is(4), stop: None };
        let connect = Event::Connect { proc, database: self.below(DATABASES) };
        let add = |events: &mut Events, some: &[Event]| events.extend(some.iter().map(|event| (at, *event)));
        match self.below(24) {
            0..3 => add(events, &[Event::Make { proc, kind, count: 1, waits: false, stop: self.stop() }]),
            3..6 => add(events, &[make]),
            6..12 => add(events, &[connect, make]),
            // The clock is ahead for a moment.
            12..15 => add(events, &[Event::Step { by: 2 * some * unit }, make, Event::SetRight]),
            15 => add(events, &[Event::Step { by: if self.is(2) { some } else { -some } * unit }]),
            16 => add(events, &[Event::SetRight]),
            17 | 18 => add(events, &[Event::LoseFile { ending: self.ending() }]),
            19 => add(events, &[if self.is(2) { Event::SaveFile } else { Event::RestoreFile }]),
            20 => {
                let node = if self.is(2) { (0, 2) } else { self.pick(&NODES) };
                add(events, &[Event::Restart { node }]);
            }
            21 => add(events, &[Event::Pass { by: some * unit / 2 }]),
            22 => add(events, &[Event::Make { proc, kind: 1, count: 1, waits: true, stop: None }]),
            _ if self.is(3) => add(events, &[Event::Replay { most: self.below(6) }]),
            _ => add(events, &[self.use_of()]),
        }
    }
}
