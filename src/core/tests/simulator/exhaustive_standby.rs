//! Plays every story of a few events with rows, a session that publishes watermarks and readers on a standby, where one session stops
//! at each of its points.

use crate::exhaustive::{PASS, all, more};
use crate::stories::{A, B, FIRST, REPLAY, follow, make, on};
use crate::story::Event;
use crate::tailing::MICROSECOND;

const BEGIN: Event = Event::Begin { proc: 0 };
const MAKE: Event = Event::Make { proc: 0, kind: MICROSECOND, count: 1, waits: false, stop: None };
const OTHER: Event = Event::Make { proc: 1, kind: MICROSECOND, count: 1, waits: false, stop: None };
const PUBLISH: Event = Event::Publish { proc: 1, stop: None };
const LOOK: Event = Event::Look { proc: 0 };
const ASK: Event = Event::Ask { proc: 0, stop: None };
const ASK_ANEW: Event = Event::Ask { proc: 1, stop: None };
const END: Event = Event::End { proc: 0, commits: true, stop: None };
const PREPARE: Event = Event::Prepare { proc: 0, stop: None };
const FINISH: Event = Event::Finish { proc: 0, which: 0, commits: true, stop: None };

/// The transactions that are open when reading on the standby begins.
fn befores() -> [Vec<Event>; 3] {
    [vec![BEGIN, MAKE], vec![BEGIN, Event::Write { proc: 0 }, MAKE], vec![BEGIN, MAKE, PREPARE]]
}

#[test]
fn every_point_at_which_a_writer_or_a_publisher_stops() {
    let length = 3 + more();
    all("a publisher", |choices| {
        let stop = choices.point();
        let before = choices.of(befores().len());
        let stopped = match choices.of(2) {
            0 => Event::Publish { proc: 1, stop },
            _ if before == 2 => Event::Finish { proc: 0, which: 0, commits: true, stop },
            _ => Event::End { proc: 0, commits: true, stop },
        };
        let others = [(A, OTHER), (A, PUBLISH), (B, REPLAY), (B, LOOK), (B, ASK_ANEW)];
        let mut events = on(A, [PASS, PUBLISH]);
        events.extend(on(B, [follow(FIRST)]));
        events.extend(on(A, befores()[before].clone()));
        events.push((A, stopped));
        let end = if before == 2 { FINISH } else { END };
        for _ in 0..length {
            events.push(others[choices.of(others.len())]);
        }
        let next_run = [0, 1].map(|proc| Event::GoOn { proc, stop: None });
        events.extend(on(A, next_run.into_iter().chain([end, PUBLISH])));
        events.extend(on(B, [REPLAY, ASK, ASK_ANEW]));
        events
    });
}

/// A standby replays WAL and is promoted while a reader is stopped.
#[test]
fn every_point_at_which_a_reader_on_a_standby_stops() {
    let length = 3 + more();
    all("a reader on a standby", |choices| {
        let stop = choices.point();
        let before = choices.of(befores().len());
        let looks = choices.of(2) == 1;
        let end = if before == 2 { FINISH } else { END };
        let others = [
            (A, OTHER),
            (A, PUBLISH),
            (A, end),
            (B, REPLAY),
            (B, Event::Promote),
            (B, OTHER),
            (B, FINISH),
            (B, PUBLISH),
        ];
        let mut events = on(A, [PASS, PUBLISH]);
        events.extend(on(B, [follow(FIRST)]));
        events.extend(on(A, befores()[before].clone()));
        events.push((B, REPLAY));
        if looks {
            events.push((B, LOOK));
        }
        events.push((B, Event::Ask { proc: 0, stop }));
        for _ in 0..length {
            events.push(others[choices.of(others.len())]);
        }
        events.extend(on(B, [Event::GoOn { proc: 0, stop: None }, ASK, ASK_ANEW, Event::Promote, make(1), FINISH]));
        events
    });
}
