//! Plays every story of a few events: on one server, on two, and with two sessions, where one session stops at each of its points.
//!
//! `FLAKE_MODEL_DEPTH` makes stories longer by that many events.

use crate::oracle::Failure;
use crate::play::Play;
use crate::stories::{Events, read, stopping};
use crate::story::Story;
use crate::{be_quiet, told};

/// Enumerates all choices. A story makes its choices in order, and the next story makes the next choices.
#[derive(Default)]
pub struct Choices {
    made: Vec<(usize, usize)>,
    at: usize,
    /// Whether a session was stopped at the current point.
    has_stopped: bool,
}

impl Choices {
    pub fn of(&mut self, count: usize) -> usize {
        if self.at == self.made.len() {
            self.made.push((0, count));
        }
        self.at += 1;
        self.made[self.at - 1].0
    }

    /// Chooses the point at which a session stops: the first one, the second one, and so on, until no story has another.
    pub fn point(&mut self) -> u16 {
        1 + self.of(usize::MAX) as u16
    }

    /// Chooses one of several parts of a story.
    pub fn part<'a>(&mut self, parts: &[&'a str]) -> &'a str {
        parts[self.of(parts.len())]
    }

    /// Chooses so many parts, and `more`.
    pub fn parts(&mut self, count: usize, parts: &[&str]) -> String {
        (0..count + more()).fold(String::new(), |story, _| story + self.part(parts) + "\n")
    }

    /// Returns whether more choices remain.
    fn next(&mut self, has_stopped: bool) -> bool {
        self.at = 0;
        self.has_stopped |= has_stopped;
        while let Some((chosen, count)) = self.made.pop() {
            if chosen + 1 < count && (count < usize::MAX || std::mem::take(&mut self.has_stopped)) {
                self.made.push((chosen + 1, count));
                return true;
            }
        }
        false
    }
}

fn more() -> usize {
    std::env::var("FLAKE_MODEL_DEPTH").map_or(0, |depth| depth.parse().unwrap())
}

/// Plays every story that the choices of `tell` make. If the story has a `!`, the first choice is where its session stops.
pub fn all(name: &str, tell: impl Fn(&mut Choices) -> String) {
    be_quiet();
    let (mut choices, mut count, mut ids) = (Choices::default(), 0u64, 0);
    loop {
        let stop = choices.point();
        let events: Events = read(&tell(&mut choices));
        let story = Story { events: stopping(&events, &[stop]), any_time: 0 };
        let world = Play::of(&story, false);
        if let Some(Failure(failure)) = world.failure {
            panic!("{name}, after {count} stories: {failure}\n{}\n{story:?}", told(&story));
        }
        (count, ids) = (count + 1, ids + world.oracle.made.len());
        if !choices.next(world.stops > 0) {
            println!("{name}: {count} stories, {ids} IDs");
            return;
        }
    }
}

#[test]
fn every_story_of_one_server() {
    let parts = [
        "make",
        "connect-all 1, make, connect-all 0",
        "step 1h, make",
        "right, pass 4",
        "accept, make",
        "restart",
        "crash, start",
        "restart 1/2, make",
        "save",
        "restore",
        "lose",
        "above@1 1",
    ];
    all("one server", |choices| {
        format!("make\n{} restart, again {}", choices.parts(3, &parts), choices.part(&["0", "2"]))
    });
}

#[test]
fn every_story_of_a_failover() {
    let parts = [
        "a: make",
        "a: connect 1, make",
        "a: step 60, make",
        "a: pass 4, make",
        "a: pass 1, make",
        "b: replay",
        "b: lose",
        "b: step -8",
        "a: right, accept, make",
        "a: recreate, make, commit",
        "a: restart 0/1, make",
    ];
    all("failover", |choices| {
        let before = choices.parts(3, &parts);
        // The standby replays all, or not the last WAL.
        let last = choices.part(&["b: replay", "b: replay\na: pass 1.5, make"]);
        // Both primaries make IDs.
        let both = "b: make\na: make, pass 0.25\n".repeat(3);
        let again = choices.part(&["0", "3"]);
        format!("a: make\nb: follow a\n{before}{last}\nb: promote\n{both}a: crash\nb: again {again} waiting")
    });
}

#[test]
fn every_point_at_which_a_session_stops() {
    let stopped = [
        "make!",
        "make, pass 4, snos!",
        "make, exit!",
        "make, step -60, accept!",
        "make, pass 4, above! 1",
        "make, pass 4, recreate!",
        "make, pass 4, ask!",
    ];
    let others = [
        "make@1",
        "make@1, exit@1",
        "above@1 2, make@1",
        "step -60, accept@1, make@1",
        "pass 4, make@1",
        "connect@1 1, make@1, connect@1 0",
        "kill",
        "crash, start, make@1",
        "step 60, make@1",
    ];
    all("points", |choices| {
        let (stopped, others) = (choices.part(&stopped), choices.parts(1, &others));
        let again = choices.part(&["0", "1"]);
        format!("{stopped}\n{others}go, make, make@1, crash, start, again {again}")
    });
}
