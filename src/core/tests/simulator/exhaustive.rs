//! Plays every story of a few events: on one server, on two, and with two sessions, where one session stops at each of its points.
//!
//! `FLAKE_MODEL_DEPTH` makes stories longer by that many events.

use crate::layouts::{HOUR, SECOND, SNO};
use crate::operator::Ending;
use crate::oracle::Failure;
use crate::play::Play;
use crate::stories::{again, connect, make};
use crate::story::{Event, Story};
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
    pub fn point(&mut self) -> Option<u16> {
        Some(1 + self.of(usize::MAX) as u16)
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

pub fn more() -> usize {
    std::env::var("FLAKE_MODEL_DEPTH").map_or(0, |depth| depth.parse().unwrap())
}

/// Plays every story that the choices of `tell` make.
pub fn all(name: &str, mut tell: impl FnMut(&mut Choices) -> Vec<(usize, Event)>) {
    be_quiet();
    let (mut choices, mut count, mut ids) = (Choices::default(), 0u64, 0);
    loop {
        let story = Story { events: tell(&mut choices), any_time: 0 };
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

pub const RESTART: Event = Event::Restart { node: (0, 2) };
const ACCEPT: Event = Event::Accept { proc: 0, stop: None };
pub const PASS: Event = Event::Pass { by: 4 * SECOND };

/// Events of an operator or of the machine on one server.
fn one_server() -> Vec<Vec<Event>> {
    vec![
        vec![make(0)],
        connect(1).into_iter().chain([make(0)]).chain(connect(0)).collect(),
        vec![Event::Step { by: HOUR }, make(0)],
        vec![Event::SetRight, PASS],
        vec![ACCEPT, make(0)],
        vec![RESTART],
        vec![Event::Stop { ending: Ending::Crash }, Event::Start],
        vec![Event::Restart { node: (1, 2) }, make(0)],
        vec![Event::SaveFile],
        vec![Event::RestoreFile],
        vec![Event::LoseFile { ending: Ending::InOrder }],
        vec![Event::StartAbove { proc: 1, ahead: SECOND, stop: None }],
    ]
}

#[test]
fn every_story_of_one_server() {
    let parts = one_server();
    let length = 3 + more();
    all("one server", |choices| {
        let mut events = vec![make(0)];
        for _ in 0..length {
            events.extend(&parts[choices.of(parts.len())]);
        }
        events.push(RESTART);
        events.extend(again(choices.of(2) * 2, false));
        events.into_iter().map(|event| (0, event)).collect()
    });
}

#[test]
fn every_story_of_a_failover() {
    let follow = |keeps_file, node| Event::Follow { source: 0, node, keeps_file };
    let parts: Vec<Vec<(usize, Event)>> = vec![
        vec![(0, make(0))],
        vec![(0, Event::Connect { proc: 0, database: 1 }), (0, make(0))],
        vec![(0, Event::Step { by: 60 * SECOND }), (0, make(0))],
        vec![(0, PASS), (0, make(0))],
        vec![(0, Event::Pass { by: SECOND }), (0, make(0))],
        vec![(1, Event::Replay { most: usize::MAX })],
        vec![(1, Event::LoseFile { ending: Ending::InOrder })],
        vec![(1, Event::Step { by: -8 * SECOND })],
        vec![(0, Event::SetRight), (0, ACCEPT), (0, make(0))],
        vec![
            (0, Event::Recreate { proc: 0, stop: None }),
            (0, make(0)),
            (0, Event::End { proc: 0, commits: true, stop: None }),
        ],
        vec![(0, Event::Restart { node: (0, 1) }), (0, make(0))],
    ];
    let length = 3 + more();
    all("failover", |choices| {
        let mut events = vec![(0, make(0)), (1, follow(false, (0, 2)))];
        for _ in 0..length {
            events.extend(&parts[choices.of(parts.len())]);
        }
        if choices.of(2) == 1 {
            // The standby does not replay the last WAL.
            events.push((1, Event::Replay { most: usize::MAX }));
            events.extend([(0, Event::Pass { by: 3 * SECOND / 2 }), (0, make(0))]);
        } else {
            events.push((1, Event::Replay { most: usize::MAX }));
        }
        events.push((1, Event::Promote));
        // The old primary is used for less than two seconds.
        for _ in 0..3 {
            events.extend([(1, make(0)), (0, make(0)), (0, Event::Pass { by: SECOND / 4 })]);
        }
        events.push((0, Event::Stop { ending: Ending::Crash }));
        events.extend(again(choices.of(2) * 3, true).into_iter().map(|event| (1, event)));
        events
    });
}

/// Calls in which a session stops in the middle, each with the events before it.
fn stopping(stop: Option<u16>) -> Vec<(Vec<Event>, Event)> {
    let used = vec![make(0), PASS];
    vec![
        (vec![], Event::Make { proc: 0, kind: 0, count: 1, waits: false, stop }),
        (used.clone(), Event::Make { proc: 0, kind: SNO, count: 1, waits: false, stop }),
        (vec![make(0)], Event::Exit { proc: 0, stop }),
        (vec![make(0), Event::Step { by: -60 * SECOND }], Event::Accept { proc: 0, stop }),
        (used.clone(), Event::StartAbove { proc: 0, ahead: SECOND, stop }),
        (used.clone(), Event::Recreate { proc: 0, stop }),
        (used, Event::Ask { proc: 0, stop }),
    ]
}

#[test]
fn every_point_at_which_a_session_stops() {
    let others: Vec<Vec<Event>> = vec![
        vec![make(1)],
        vec![make(1), Event::Exit { proc: 1, stop: None }],
        vec![Event::StartAbove { proc: 1, ahead: 2 * SECOND, stop: None }, make(1)],
        vec![Event::Step { by: -60 * SECOND }, Event::Accept { proc: 1, stop: None }, make(1)],
        vec![PASS, make(1)],
        vec![Event::Connect { proc: 1, database: 1 }, make(1), Event::Connect { proc: 1, database: 0 }],
        vec![Event::Kill { proc: 0 }],
        vec![Event::Stop { ending: Ending::Crash }, Event::Start, make(1)],
        vec![Event::Step { by: 60 * SECOND }, make(1)],
    ];
    let length = 1 + more();
    all("points", |choices| {
        let sessions = stopping(choices.point());
        let (before, session) = sessions[choices.of(sessions.len())].clone();
        let mut events = before;
        events.push(session);
        for _ in 0..length {
            events.extend(&others[choices.of(others.len())]);
        }
        events.push(Event::GoOn { proc: 0, stop: None });
        events.extend([make(0), make(1), Event::Stop { ending: Ending::Crash }, Event::Start]);
        events.extend(again(choices.of(2), false));
        events.into_iter().map(|event| (0, event)).collect()
    });
}
