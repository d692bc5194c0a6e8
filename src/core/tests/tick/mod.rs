//! A server whose sessions take IDs from the lanes of one tick.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::cell::{Cell, RefCell};

use flake_core::{Answer, Cursors, Generator, Lanes, Layout, Node, OwnCursors, Part, built_in};

#[path = "../made/mod.rs"]
mod made;

/// The beginning of a millisecond.
pub const TICK: i64 = 1_700_000_000_001_000;

/// Cursors that note who takes what, and that stop counting after some swaps.
pub struct Watched {
    pub cursors: OwnCursors,
    /// The lane, and how far its IDs are taken then.
    pub taken: RefCell<Vec<(u64, u64)>>,
    pub swaps_left: Cell<usize>,
}

impl Cursors for Watched {
    fn load(&self, lane: u64, bit: u64) -> u64 {
        self.cursors.load(lane, bit)
    }
    fn swap(&self, lane: u64, bit: u64, old: u64, new: u64) -> bool {
        let is_swapped = self.cursors.swap(lane, bit, old, new);
        if is_swapped {
            self.taken.borrow_mut().push((lane, new));
            self.swaps_left.set(self.swaps_left.get().saturating_sub(1));
        }
        is_swapped
    }
    fn steps_back(&self) -> u64 {
        self.cursors.steps_back()
    }
    fn step_back(&self, known: u64) -> bool {
        self.cursors.step_back(known)
    }
    fn are_current(&self) -> bool {
        self.swaps_left.get() > 0
    }
}

/// A server that has all IDs of its node, its cursors, and the number of the tick that begins at `start`.
pub struct Server<'a> {
    pub layout: &'a Layout,
    pub lanes: Lanes,
    pub cursors: Watched,
    pub start: i64,
    pub tick: u64,
}

impl<'a> Server<'a> {
    pub fn of(layout: &'a Layout, nodes: u32, start: i64) -> Self {
        let lanes = Lanes::new(layout, Part::whole(Node::new(0, nodes).unwrap())).unwrap();
        let cursors = OwnCursors::new(&lanes);
        let cursors = Watched { cursors, taken: RefCell::default(), swaps_left: Cell::new(usize::MAX) };
        Self { layout, lanes, cursors, start, tick: layout.tick_at(start).unwrap() }
    }

    /// A session with this lane, that may use the tick.
    pub fn session(&self, lane: u64) -> Generator<&'a Layout> {
        Generator::start(self.layout, &self.lanes, lane, self.start)
    }

    /// Makes an ID, and returns its number among the node's IDs of the tick, or the answer.
    pub fn number(&self, session: &mut Generator<&Layout>, into_tick: i64) -> Result<u64, Answer> {
        match session.next(self.start + into_tick, &self.cursors, || 0) {
            Answer::Issue(id) => {
                let parts = self.layout.unpack(id).unwrap();
                Ok(parts.worker * self.layout.sequences() + parts.sequence)
            }
            answer => Err(answer),
        }
    }

    /// Makes all IDs that there are at an instant.
    pub fn all(&self, session: &mut Generator<&Layout>, into_tick: i64) -> (Vec<u64>, Answer) {
        let mut numbers = Vec::new();
        loop {
            match self.number(session, into_tick) {
                Ok(number) => numbers.push(number),
                Err(answer) => return (numbers, answer),
            }
        }
    }

    /// Makes IDs while the clock goes through the tick, as far as the session asks. Returns the last answer and its instant, too.
    pub fn walk(&self, session: &mut Generator<&Layout>) -> (Vec<u64>, Answer, i64) {
        let (mut numbers, mut into_tick) = (Vec::new(), 0);
        loop {
            let (more, answer) = self.all(session, into_tick);
            numbers.extend(more);
            let Answer::Ahead { until } = answer else { return (numbers, answer, into_tick) };
            assert!(until > self.start + into_tick, "{answer:?} at {into_tick}");
            into_tick = until - self.start;
        }
    }

    /// The first number of a lane in a step.
    pub fn first_of(&self, lane: u64, step: u64) -> u64 {
        (step * self.lanes.count + (lane + self.tick + step) % self.lanes.count) * self.lanes.ids_per_step
    }
}

pub fn twitter() -> &'static Layout {
    built_in("twitter").unwrap()
}

pub fn si() -> &'static Layout {
    built_in("si").unwrap()
}

/// A layout with a timestamp, a worker and a sequence of so many bits.
pub fn layout(tick: i64, [time, worker, sequence]: [u8; 3]) -> Layout {
    made::layout(tick, &format!("t{time} w{worker} s{sequence}"))
}
