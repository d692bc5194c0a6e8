//! Plays every story of a few events with a session that writes rows and a session that reads them, where one stops at each of its
//! points. Ticks end at once, and the reader has asked for a watermark after time was granted.

use crate::exhaustive::all;

/// The reader is stopped while the writer continues.
#[test]
fn every_point_at_which_a_reader_stops() {
    let befores = [
        "",
        "micro",
        "begin, micro",
        "begin, write",
        "begin, micro, prepare",
        "begin, micro, prepare, crash, start, pass 4, make@1",
    ];
    let others = ["micro", "commit", "prepare", "finish", "begin, micro", "cover 5us"];
    all("a reader", |choices| {
        let (before, looks) = (choices.part(&befores), choices.part(&["", "look@1"]));
        let others = choices.parts(2, &others);
        format!(
            "pass 4, ask@1, make@1, {before}, {looks}, ask@1!
             {others} go@1, commit@1, ask@1, commit, finish, ask@1"
        )
    });
}

/// The writer is stopped while the reader continues.
#[test]
fn every_point_at_which_a_writer_stops() {
    let stopped = [
        "micro!",
        "begin, micro!",
        "make@1, cover! 3us",
        "begin, micro, commit!",
        "begin, micro, look@1, commit!",
        "begin, micro, prepare!",
        "begin, micro, prepare, finish!",
    ];
    let others = ["ask@1", "look@1, ask@1", "finish@1", "pass 2000us", "crash, start"];
    all("a writer", |choices| {
        let (stopped, others) = (choices.part(&stopped), choices.parts(2, &others));
        format!(
            "pass 4, ask@1, make@1, {stopped}
             {others} go, ask@1, commit, finish, commit@1, ask@1"
        )
    });
}
