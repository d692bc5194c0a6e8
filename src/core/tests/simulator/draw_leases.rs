//! Draws stories of lessees: applications that lease workers of the pool while servers fail and clocks are set.

use crate::draw::{Chance, NODES};
use crate::layouts::SECOND;
use crate::play::SERVERS;
use crate::story::{Event, Story};

type Events = Vec<(usize, Event)>;

impl Chance {
    /// A lessee asks for a lease, or the time passes until it should ask again.
    pub fn lease(&mut self) -> Event {
        let kind = self.kind_to_lease();
        self.lease_of(kind)
    }

    pub fn kind_to_lease(&mut self) -> usize {
        self.pick(&[0, 1, 2, 3])
    }

    fn lease_of(&mut self, kind: usize) -> Event {
        if self.is(3) {
            return Event::Pass { by: self.pick(&[1, 2, 10, 33, 66]) * SECOND + self.below(3) as i64 * SECOND / 10 };
        }
        if self.is(6) {
            return self.release_of(kind);
        }
        let renews = (!self.is(3)).then(|| if self.is(2) { 0 } else { self.below(3) });
        Event::Lease { slot: self.slot(), kind, renews, stop: self.stop() }
    }

    /// A lessee releases a lease.
    pub fn release(&mut self) -> Event {
        let kind = self.kind_to_lease();
        self.release_of(kind)
    }

    fn release_of(&mut self, kind: usize) -> Event {
        let (slot, which) = (self.slot(), self.below(3));
        Event::Release { slot, kind, which, is_unused: self.is(3), stop: self.stop() }
    }

    /// Draws a story of lessees.
    pub fn story_of_lessees(&mut self) -> Story {
        let mut events = Vec::new();
        self.of_lessees(&mut events);
        Story { events }
    }

    /// Applications lease workers while servers fail, and get other numbers.
    pub fn of_lessees(&mut self, events: &mut Events) {
        let kind = self.kind_to_lease();
        self.first_leases(events, 0, kind);
        if self.is(2) {
            return self.of_takeovers_beside_lessees(events, kind);
        }
        for _ in 0..10 + self.below(60) {
            let at = if self.is(3) { self.below(SERVERS) } else { 0 };
            let event = match self.below(24) {
                0..14 => self.lease(),
                14..17 => self.use_of(),
                17 => self.rare(),
                18 | 19 => Event::Step { by: if self.is(2) { self.length() } else { -self.length() } },
                20 if self.is(2) => Event::Promote,
                20 | 21 => Event::Replay { most: if self.is(2) { usize::MAX } else { self.below(4) } },
                22 => Event::Follow { source: self.below(SERVERS), node: self.pick(&NODES), keeps_file: self.is(3) },
                _ => Event::Restart { node: self.pick(&NODES), preloads: self.is(3) },
            };
            events.push((at, event));
        }
    }

    /// A server starts and grants its first leases, at once or after the time that was granted before the start.
    fn first_leases(&mut self, events: &mut Events, at: usize, kind: usize) {
        let lease = Event::Lease { slot: 0, kind, renews: None, stop: None };
        let wait = self.pick(&[1, 5, 30, 60, 71]) * SECOND;
        let across = self.pick(&[2, 2, 2, 1]) * SECOND;
        let of_start = [lease, Event::Pass { by: wait }, lease, Event::Pass { by: across }, lease];
        events.extend(of_start.map(|event| (at, event)));
    }

    /// A standby that lags takes over while lessees of one kind renew their leases at the old primary.
    fn of_takeovers_beside_lessees(&mut self, events: &mut Events, kind: usize) {
        let follow = self.follow(0);
        events.push((1, follow));
        let sets_clocks = self.is(2);
        for _ in 0..self.below(14) {
            let event = match self.below(if sets_clocks { 8 } else { 32 }) {
                0 => (1, Event::Step { by: if self.is(2) { self.length() } else { -self.length() } }),
                1 => (0, Event::Step { by: if self.is(2) { self.length() } else { -self.length() } }),
                2 => (1, Event::Replay { most: usize::MAX }),
                _ => (0, self.lease_of(kind)),
            };
            events.push(event);
        }
        events.push((1, Event::Promote));
        for _ in 0..self.below(5) {
            let event =
                if self.is(2) { Event::Pass { by: self.below(20) as i64 * SECOND / 10 } } else { self.lease_of(kind) };
            events.push((0, event));
        }
        if self.is(3) {
            events.push((1, Event::Restart { node: self.pick(&NODES), preloads: self.is(2) }));
        }
        self.first_leases(events, 1, kind);
        for _ in 0..self.below(12) {
            let event = if self.is(4) { self.use_of() } else { self.lease_of(kind) };
            events.push((1, event));
        }
    }
}
