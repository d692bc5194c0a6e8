//! Plays every story of a few events with rows, a session that publishes watermarks and readers on a standby, where one session stops
//! at each of its points.

use crate::exhaustive::all;

/// The transactions that are open when reading on the standby begins, and how they end.
const OPEN: [(&str, &str); 3] =
    [("begin, micro", "commit"), ("begin, write, micro", "commit"), ("begin, micro, prepare", "finish")];

#[test]
fn every_point_at_which_a_writer_or_a_publisher_stops() {
    let others = ["a: micro@1", "a: publish@1", "b: replay", "b: look", "b: ask@1"];
    all("a publisher", |choices| {
        let (before, end) = OPEN[choices.of(OPEN.len())];
        let stopped = choices.part(&["publish@1", end]);
        let others = choices.parts(3, &others);
        format!(
            "a: pass 4, publish@1
             b: follow a
             a: {before}, {stopped}!
             {others}
             a: go, go@1, {end}, publish@1
             b: replay, ask, ask@1"
        )
    });
}

/// A standby replays WAL and is promoted while a reader is stopped.
#[test]
fn every_point_at_which_a_reader_on_a_standby_stops() {
    all("a reader on a standby", |choices| {
        let (before, end) = OPEN[choices.of(OPEN.len())];
        let looks = choices.part(&["", "look"]);
        let end = format!("a: {end}");
        let others =
            ["a: micro@1", "a: publish@1", &end, "b: replay", "b: promote", "b: micro@1", "b: finish", "b: publish@1"];
        let others = choices.parts(3, &others);
        format!(
            "a: pass 4, publish@1
             b: follow a
             a: {before}
             b: replay, {looks}, ask!
             {others}
             b: go, ask, ask@1, promote, make@1, finish"
        )
    });
}
