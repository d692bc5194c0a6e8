//! Stories of new primaries and new numbers.

use crate::layouts::SECOND;
use crate::operator::Ending;
use crate::stories::{
    A, B, CRASH, FIRST, REPLAY, RESTART, SECOND_NODE, START, again, at_each_point, connect, follow, goes_well, make,
    on, wait,
};
use crate::story::Event;

/// A standby without its file is promoted, and its first act is to create the extension in another database.
#[test]
fn an_old_primary_goes_on_while_another_database_comes_first() {
    let there = |at| (at, make(0));
    let mut both = Vec::new();
    for _ in 0..7 {
        both.extend([there(A), there(B), (A, Event::Pass { by: SECOND / 4 })]);
    }
    let end = |slot| Event::End { slot, commits: true, stop: None };
    goes_well([
        on(A, connect(1)),
        on(A, [make(1), Event::Drop { database: 1 }]),
        on(A, connect(0)),
        on(A, [make(0), make(1)]),
        on(B, [follow(FIRST), Event::LoseFile { ending: Ending::InOrder }]),
        on(A, [Event::Pass { by: 7 * SECOND }, make(0)]),
        on(B, [REPLAY, Event::Promote]),
        on(B, connect(1)),
        on(B, [Event::Recreate { slot: 0, stop: None }, end(0)]),
        on(B, connect(0)),
        both,
    ]);
}

/// The clock was ahead; the server gets another number and its own one again.
#[test]
fn a_number_that_comes_back_remembers_its_time() {
    for database in [0, 1] {
        let renumber = |node| Event::Restart { node, preloads: false };
        goes_well([
            on(A, [make(0), Event::Step { by: 200 * SECOND }, make(0), make(1), RESTART, Event::SetRight]),
            on(A, [renumber(SECOND_NODE), wait(0), renumber(FIRST)]),
            on(A, connect(database)),
            on(A, [wait(0)]),
            on(A, again(2, true)),
        ]);
    }
}

/// A new primary is restarted while it waits for the old one: it waits again.
#[test]
fn a_restart_while_a_new_primary_waits() {
    for restart in [vec![RESTART], vec![CRASH, START]] {
        let of_seconds = Event::Make { slot: 1, kind: 2, count: 1, waits: false, stop: None };
        goes_well([
            on(B, [follow(FIRST)]),
            on(A, [make(0), Event::Pass { by: 6 * SECOND }]),
            on(B, [REPLAY]),
            on(A, [of_seconds]),
            on(B, [Event::Promote, make(0), Event::Ask { slot: 0, stop: None }]),
            on(B, restart),
            on(B, [of_seconds]),
        ]);
    }
}

/// An old primary goes on until just before a new one has waited for it: its last tick is not gone on with.
#[test]
fn a_tick_in_which_an_old_primary_has_ended() {
    let later = Event::Make { slot: 1, kind: 1, count: 1, waits: true, stop: None };
    goes_well([
        on(B, [follow(FIRST), Event::Pass { by: SECOND / 10 }, Event::Promote, make(1)]),
        on(A, [make(0), Event::Pass { by: 2 * SECOND - SECOND / 50 }, make(1)]),
        on(B, [later, make(1)]),
        on(B, again(1, false)),
    ]);
}

/// The last IDs of the old primary had not come across: they are covered while they span less than two seconds.
#[test]
fn what_had_not_come_across() {
    for eighths in 1..15 {
        let pass = Event::Pass { by: eighths * SECOND / 8 };
        let go_on = |kind| Event::Make { slot: 0, kind, count: 1, waits: false, stop: None };
        goes_well([
            on(A, [wait(0)]),
            on(B, [follow(FIRST), Event::Step { by: -8 * SECOND }]),
            on(A, [Event::Pass { by: 19 * SECOND / 10 }, go_on(0)]),
            on(B, [REPLAY]),
            on(A, [pass, go_on(0), CRASH]),
            on(B, [Event::Promote, go_on(0)]),
            on(B, again(0, true)),
        ]);
    }
}

/// The first to ask a new primary asks for a horizon, is stopped or killed anywhere, and the server is restarted: it goes on waiting
/// for the old primary, of which it has not replayed the last.
#[test]
fn a_horizon_on_a_new_primary_that_is_restarted() {
    for ending in [Ending::InOrder, Ending::Crash] {
        at_each_point(|stop| {
            let ask = Event::Ask { slot: 0, stop: Some(stop) };
            goes_well([
                on(B, [follow(FIRST)]),
                on(A, [Event::Pass { by: SECOND / 4 }, make(1)]),
                on(B, [Event::Promote, ask, Event::Stop { ending }, START, make(1)]),
            ])
            .stops
        });
    }
}

#[test]
fn a_standby_of_another_number_that_takes_the_old_one_s() {
    goes_well([
        on(B, [Event::Follow { source: A, node: SECOND_NODE, allows: true, keeps_file: false }]),
        on(A, [Event::Pass { by: SECOND / 4 }, make(1)]),
        on(B, [Event::Promote, make(0), RESTART, make(1)]),
    ]);
}
