//! Plays every story of a few events with a session that writes rows and a session that reads them, where one stops at each of its
//! points.

use crate::exhaustive::{PASS, all, more};
use crate::stories::{CRASH, START, make};
use crate::story::Event;
use crate::tailing::MICROSECOND;

const BEGIN: Event = Event::Begin { proc: 0 };
/// The tick ends at once.
const MAKE: Event = Event::Make { proc: 0, kind: MICROSECOND, count: 1, waits: false, stop: None };
const ASK: Event = Event::Ask { proc: 1, stop: None };
const LOOK: Event = Event::Look { proc: 1 };
const END: Event = Event::End { proc: 0, commits: true, stop: None };
const END_OF_READER: Event = Event::End { proc: 1, commits: true, stop: None };
const PREPARE: Event = Event::Prepare { proc: 0, stop: None };
const FINISH: Event = Event::Finish { proc: 0, which: 0, commits: true, stop: None };

/// Events after which time is granted and the reader has asked for a watermark.
fn opened() -> Vec<Event> {
    vec![PASS, ASK, make(1)]
}

fn prepared() -> Vec<Event> {
    vec![BEGIN, MAKE, PREPARE]
}

/// The reader is stopped while the writer continues.
#[test]
fn every_point_at_which_a_reader_stops() {
    let befores = [
        vec![],
        vec![MAKE],
        vec![BEGIN, MAKE],
        vec![BEGIN, Event::Write { proc: 0 }],
        prepared(),
        vec![BEGIN, MAKE, PREPARE, CRASH, START, PASS, make(1)],
    ];
    let others: Vec<Vec<Event>> = vec![
        vec![MAKE],
        vec![END],
        vec![PREPARE],
        vec![FINISH],
        vec![BEGIN, MAKE],
        vec![Event::Cover { proc: 0, ago: 5, stop: None }],
    ];
    let length = 2 + more();
    all("a reader", |choices| {
        let stop = choices.point();
        let mut events = opened();
        events.extend(befores[choices.of(befores.len())].clone());
        events.extend([vec![], vec![LOOK]][choices.of(2)].clone());
        events.push(Event::Ask { proc: 1, stop });
        for _ in 0..length {
            events.extend(&others[choices.of(others.len())]);
        }
        events.extend([Event::GoOn { proc: 1, stop: None }, END_OF_READER, ASK, END, FINISH, ASK]);
        events.into_iter().map(|event| (0, event)).collect()
    });
}

/// The writer is stopped while the reader continues.
#[test]
fn every_point_at_which_a_writer_stops() {
    let parts = |stop| -> Vec<(Vec<Event>, Event)> {
        vec![
            (vec![], Event::Make { proc: 0, kind: MICROSECOND, count: 1, waits: false, stop }),
            (vec![BEGIN], Event::Make { proc: 0, kind: MICROSECOND, count: 1, waits: false, stop }),
            (vec![make(1)], Event::Cover { proc: 0, ago: 3, stop }),
            (vec![BEGIN, MAKE], Event::End { proc: 0, commits: true, stop }),
            (vec![BEGIN, MAKE, LOOK], Event::End { proc: 0, commits: true, stop }),
            (vec![BEGIN, MAKE], Event::Prepare { proc: 0, stop }),
            (prepared(), Event::Finish { proc: 0, which: 0, commits: true, stop }),
        ]
    };
    let others: Vec<Vec<Event>> = vec![
        vec![ASK],
        vec![LOOK, ASK],
        vec![Event::Finish { proc: 1, which: 0, commits: true, stop: None }],
        vec![Event::Pass { by: 2000 }],
        vec![CRASH, START],
    ];
    let length = 2 + more();
    all("a writer", |choices| {
        let writers = parts(choices.point());
        let (before, writer) = writers[choices.of(writers.len())].clone();
        let mut events = opened();
        events.extend(before);
        events.push(writer);
        for _ in 0..length {
            events.extend(&others[choices.of(others.len())]);
        }
        events.extend([Event::GoOn { proc: 0, stop: None }, ASK, END, FINISH, END_OF_READER, ASK]);
        events.into_iter().map(|event| (0, event)).collect()
    });
}
