//! Plays every story of a few events with rows, a session that publishes watermarks and readers on a standby, where one session stops
//! at each of its points.

use crate::exhaustive::{PASS, all, more};
use crate::stories::{A, B, FIRST, REPLAY, follow, make, on};
use crate::story::Event;
use crate::tailing::MICROSECOND;

const BEGIN: Event = Event::Begin { slot: 0 };
const MAKE: Event = Event::Make { slot: 0, kind: MICROSECOND, count: 1, waits: false, stop: None };
const OTHER: Event = Event::Make { slot: 1, kind: MICROSECOND, count: 1, waits: false, stop: None };
const PUBLISH: Event = Event::Publish { slot: 1, stop: None };
const LOOK: Event = Event::Look { slot: 0 };
const ASK: Event = Event::Ask { slot: 0, stop: None };
const ASK_ANEW: Event = Event::Ask { slot: 1, stop: None };
const END: Event = Event::End { slot: 0, commits: true, stop: None };
const PREPARE: Event = Event::Prepare { slot: 0, stop: None };
const FINISH: Event = Event::Finish { slot: 0, which: 0, commits: true, stop: None };

/// The transactions that are open when reading on the standby begins.
fn befores() -> [Vec<Event>; 3] {
    [vec![BEGIN, MAKE], vec![BEGIN, Event::Write { slot: 0 }, MAKE], vec![BEGIN, MAKE, PREPARE]]
}

#[test]
fn every_point_at_which_a_writer_or_a_publisher_stops() {
    let length = 3 + more();
    all("a publisher", |choices| {
        let stop = choices.point();
        let before = choices.of(befores().len());
        let stopped = match choices.of(2) {
            0 => Event::Publish { slot: 1, stop },
            _ if before == 2 => Event::Finish { slot: 0, which: 0, commits: true, stop },
            _ => Event::End { slot: 0, commits: true, stop },
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
        let go_on = [0, 1].map(|slot| Event::GoOn { slot, stop: None });
        events.extend(on(A, go_on.into_iter().chain([end, PUBLISH])));
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
        events.push((B, Event::Ask { slot: 0, stop }));
        for _ in 0..length {
            events.push(others[choices.of(others.len())]);
        }
        events.extend(on(B, [Event::GoOn { slot: 0, stop: None }, ASK, ASK_ANEW, Event::Promote, make(1), FINISH]));
        events
    });
}
