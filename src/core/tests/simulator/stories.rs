//! Helpers of the stories in `stories_of_*.rs`. Each of those once found a fault of the product or of the protocol: an ID that was
//! made twice, a server that made none, or a lost row.

use crate::layouts::{SECOND, SNO};
use crate::operator::Ending;
use crate::oracle::Failure;
use crate::play::{Play, World};
use crate::story::{Event, Story};
use crate::{be_quiet, told};

pub const FIRST: (u32, u32) = (0, 2);
pub const SECOND_NODE: (u32, u32) = (1, 2);
/// The servers.
pub const A: usize = 0;
pub const B: usize = 1;
pub const C: usize = 2;

pub fn make(proc: usize) -> Event {
    Event::Make { proc, kind: 0, count: 1, waits: false, stop: None }
}

/// Makes an ID, and waits as long as sessions wait.
pub fn wait(proc: usize) -> Event {
    Event::Make { proc, kind: 1, count: 1, waits: true, stop: None }
}

/// Makes snos, whose generators continue in their proc.
pub fn snos(proc: usize) -> Event {
    Event::Make { proc, kind: SNO, count: 2, waits: false, stop: None }
}

/// Sets the clock to when the last ID was made, and makes snos there.
pub fn snos_again(proc: usize) -> Vec<Event> {
    vec![Event::ToUsed { which: 0, by: 0, waits: false }, snos(proc), Event::Pass { by: 4000 }, snos(proc)]
}

pub fn connect(database: usize) -> [Event; 2] {
    [0, 1].map(|proc| Event::Connect { proc, database })
}

pub fn follow(node: (u32, u32)) -> Event {
    Event::Follow { source: A, node, keeps_file: false }
}

pub const RESTART: Event = Event::Restart { node: FIRST };
pub const ACCEPT: Event = Event::Accept { proc: 0, stop: None };
pub const REPLAY: Event = Event::Replay { most: usize::MAX };
pub const CRASH: Event = Event::Stop { ending: Ending::Crash };
pub const START: Event = Event::Start;
pub const LOSE_FILE: Event = Event::LoseFile { ending: Ending::InOrder };

/// Sets the clock to when the ID was made that is `which` IDs before the last one, and makes IDs there.
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

/// Plays a story, and fails if anything goes wrong in it.
pub fn goes_well(events: impl IntoIterator<Item = Vec<(usize, Event)>>) -> World {
    be_quiet();
    let story = Story { events: events.into_iter().flatten().collect(), any_time: 0 };
    let world = Play::of(&story, false);
    if let Some(Failure(failure)) = &world.failure {
        panic!("{failure}\n{}", told(&story));
    }
    world
}

/// Plays a story once for each point at which its session can stop. `story` is given the number of the point, and returns how often
/// sessions were stopped.
pub fn at_each_point(story: impl Fn(u16) -> usize) {
    let points = (1..).take_while(|&stop| story(stop) > 0).count();
    assert!(points > 0, "no session was stopped");
}

/// The number of IDs that a server made before the epilogue, in which clocks are right.
pub fn made_on(world: &World, at: usize, kind: usize) -> usize {
    world.oracle.made.iter().filter(|made| made.server == at && made.kind == kind).count()
}
