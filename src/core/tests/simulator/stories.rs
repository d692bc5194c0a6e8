//! Helpers of stories. `stories_of_*.rs` have those that had two of the same ID once, a server that made none, or a row that
//! was lost, in the product or in the protocol.

use crate::layouts::SECOND;
use crate::operator::Ending;
use crate::oracle::Failure;
use crate::play::{Play, World};
use crate::story::{Event, Story};
use crate::{be_quiet, told};

pub const FIRST: (u32, u32) = (0, 2);
pub const SECOND_NODE: (u32, u32) = (1, 2);
/// Servers.
pub const A: usize = 0;
pub const B: usize = 1;
pub const C: usize = 2;

pub fn make(slot: usize) -> Event {
    Event::Make { slot, kind: 0, count: 1, waits: false, stop: None }
}

/// The same, and waits as long as sessions do.
pub fn wait(slot: usize) -> Event {
    Event::Make { slot, kind: 1, count: 1, waits: true, stop: None }
}

pub fn connect(database: usize) -> [Event; 2] {
    [0, 1].map(|slot| Event::Connect { slot, database })
}

pub fn follow(node: (u32, u32)) -> Event {
    Event::Follow { source: A, node, keeps_file: false }
}

pub const RESTART: Event = Event::Restart { node: FIRST, preloads: false };
pub const ACCEPT: Event = Event::Accept { slot: 0, stop: None };
pub const REPLAY: Event = Event::Replay { most: usize::MAX };
pub const CRASH: Event = Event::Stop { ending: Ending::Crash };
pub const START: Event = Event::Start { preloads: false };

/// The clock comes to where IDs were made, of which this is the one so many before the last; sessions make IDs there.
pub fn again(which: usize, waits: bool) -> Vec<Event> {
    let mut events = vec![Event::ToUsed { which, by: -SECOND / 4, waits }];
    for _ in 0..14 {
        events.extend([make(0), make(1), Event::Pass { by: SECOND / 4 }]);
    }
    events
}

pub fn on(at: usize, events: impl IntoIterator<Item = Event>) -> Vec<(usize, Event)> {
    events.into_iter().map(|event| (at, event)).collect()
}

/// Plays a story in which nothing goes wrong.
pub fn goes_well(events: impl IntoIterator<Item = Vec<(usize, Event)>>) -> World {
    be_quiet();
    let story = Story { events: events.into_iter().flatten().collect() };
    let world = Play::of(&story, false);
    if let Some(Failure(failure)) = &world.failure {
        panic!("{failure}\n{}", told(&story));
    }
    world
}

/// Plays stories that stop a session at its first point, at its second one, and so on, until it has no more. They return how often
/// sessions were stopped.
pub fn at_each_point(story: impl Fn(u16) -> usize) {
    let points = (1..).take_while(|&stop| story(stop) > 0).count();
    assert!(points > 0, "no session was stopped");
}

/// The number of IDs that servers have made before the epilogue, in which clocks are right.
pub fn made_on(world: &World, at: usize, kind: usize) -> usize {
    world.oracle.made.iter().filter(|made| made.server == at && made.kind == kind).count()
}
