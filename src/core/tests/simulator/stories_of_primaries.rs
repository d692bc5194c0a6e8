//! Stories of new primaries and new numbers.

use crate::layouts::{HOUR, SECOND, SNO};
use crate::operator::Ending;
use crate::stories::{
    A, B, C, CRASH, FIRST, LOSE_FILE, REPLAY, RESTART, SECOND_NODE, START, again, at_each_point, connect, follow,
    goes_well, made_on, make, on, wait,
};
use crate::story::Event;

/// A standby without its file is promoted. It first creates the extension in another database, while the old primary still runs.
#[test]
fn a_new_primary_waits_although_its_first_database_does_not_know_the_old_one() {
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
        on(B, [follow(FIRST), LOSE_FILE]),
        on(A, [Event::Pass { by: 7 * SECOND }, make(0)]),
        on(B, [REPLAY, Event::Promote]),
        on(B, connect(1)),
        on(B, [Event::Recreate { slot: 0, stop: None }, end(0)]),
        on(B, connect(0)),
        both,
    ]);
}

/// A new primary is given the number of the old one, which still runs. The file knows that number's mark; the page is new.
#[test]
fn a_server_given_the_number_of_an_old_primary_waits_although_the_page_is_new() {
    goes_well([
        on(B, [follow(SECOND_NODE), Event::Pass { by: SECOND / 30 }, Event::Promote, make(1)]),
        on(B, [Event::Restart { node: FIRST, preloads: false }, Event::Recreate { slot: 0, stop: None }]),
        on(B, [Event::End { slot: 0, commits: true, stop: None }, Event::MakeOfMany { slot: 0 }]),
        on(A, [Event::Make { slot: 0, kind: SNO, count: 1, waits: false, stop: None }]),
    ]);
}

/// The clock was ahead. The server gets another number, and then its own number again.
#[test]
fn a_number_that_comes_back_remembers_its_time() {
    for database in [0, 1] {
        let renumber = |node| Event::Restart { node, preloads: false };
        goes_well([
            on(A, [make(0), Event::Step { by: 200 * SECOND }, make(0), make(1), RESTART, Event::SetRight]),
            on(A, [renumber(SECOND_NODE), wait(0), Event::Pass { by: 3 * SECOND }, wait(0), renumber(FIRST)]),
            on(A, connect(database)),
            on(A, [wait(0)]),
            on(A, again(2, true)),
        ]);
    }
}

/// A new primary is restarted while it waits for the old one.
#[test]
fn a_new_primary_that_is_restarted_while_it_waits_waits_again() {
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

/// An old primary makes IDs until just before a new one stops waiting for it. The new one must not continue in the old one's last
/// tick.
#[test]
fn a_new_primary_does_not_continue_in_the_last_tick_of_the_old_one() {
    let later = Event::Make { slot: 1, kind: 1, count: 1, waits: true, stop: None };
    goes_well([
        on(B, [follow(FIRST), LOSE_FILE, Event::Pass { by: SECOND / 10 }, Event::Promote, make(1)]),
        on(A, [make(0), Event::Pass { by: 2 * SECOND - SECOND / 50 }, make(1)]),
        on(B, [later, make(1)]),
        on(B, again(1, false)),
    ]);
}

/// The last IDs of the old primary are not replicated. They are covered if they span less than two seconds.
#[test]
fn ids_that_were_not_replicated_are_covered_for_two_seconds() {
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

/// The clock of a primary was ahead when the standby replayed its last WAL, and is right at the promotion. In this database it had
/// made no IDs until then, so two seconds of lag are not covered.
#[test]
fn the_lag_of_a_primary_that_was_idle_by_its_clock_of_then_is_not_covered() {
    let ask = Event::Ask { slot: 1, stop: None };
    let used = Event::ToUsed { which: 1, by: -1, waits: true };
    let world = goes_well([
        on(A, [Event::Connect { slot: 0, database: 1 }]),
        on(B, [follow(FIRST)]),
        on(A, [ask, Event::Step { by: 6 * SECOND }, make(0)]),
        on(B, [REPLAY]),
        on(A, [make(1), Event::SetRight]),
        on(B, [Event::Promote, used, make(1)]),
    ]);
    assert_eq!(world.oracle.forgiven.iter().sum::<u64>(), 1);
}

/// The first session on a new primary asks for a horizon and is stopped or killed anywhere, and the server is restarted. It must
/// still wait for the old primary, whose last WAL it has not replayed.
#[test]
fn a_new_primary_that_is_restarted_after_a_horizon_waits_again() {
    for ending in [Ending::InOrder, Ending::Crash] {
        at_each_point(|stop| {
            let ask = Event::Ask { slot: 0, stop: Some(stop) };
            goes_well([
                on(B, [follow(FIRST), LOSE_FILE]),
                on(A, [Event::Pass { by: SECOND / 4 }, make(1)]),
                on(B, [Event::Promote, ask, Event::Stop { ending }, START, make(1)]),
            ])
            .stops
        });
    }
}

#[test]
fn a_standby_that_takes_the_number_of_the_old_primary_waits_for_it() {
    goes_well([
        on(B, [Event::Follow { source: A, node: SECOND_NODE, keeps_file: false }]),
        on(A, [Event::Pass { by: SECOND / 4 }, make(1)]),
        on(B, [Event::Promote, make(0), RESTART, make(1)]),
    ]);
}

/// flake_start_above is given the greatest ID of a dump. Then the server is restarted under another number and under its own again,
/// and used in the same database, or in one whose page does not have the call.
#[test]
fn start_above_binds_under_another_number() {
    let above = Event::StartAbove { slot: 0, ahead: HOUR, stop: None };
    let renumber = |node| Event::Restart { node, preloads: false };
    for (node, database) in [(SECOND_NODE, 0), ((0, 1), 0), (FIRST, 1), (SECOND_NODE, 1)] {
        let before = [Event::Pass { by: SECOND / 4 }, make(0), above];
        let world = goes_well([
            on(A, before),
            on(A, [renumber(node)]),
            on(A, connect(database)),
            on(A, [make(0), wait(1), renumber(FIRST), make(0)]),
        ]);
        assert_eq!(made_on(&world, A, 0), 1, "the one from before");
    }
}

/// flake_start_above is called, and a standby takes over, perhaps with a number of its own.
#[test]
fn start_above_binds_after_a_failover() {
    let above = Event::StartAbove { slot: 0, ahead: HOUR, stop: None };
    for node in [FIRST, SECOND_NODE] {
        let world = goes_well([
            on(A, [make(0)]),
            on(B, [follow(node)]),
            on(A, [above]),
            on(B, [REPLAY]),
            on(A, [CRASH]),
            on(B, [Event::Promote, make(0), wait(1), Event::Restart { node, preloads: false }, make(0)]),
        ]);
        assert_eq!(made_on(&world, B, 0), 0);
    }
}

/// A new primary is restarted before it has met the old one, which was idle in the other database and is used there again.
#[test]
fn a_new_primary_that_is_restarted_before_it_has_met_the_old_one_waits() {
    for restart in [vec![RESTART], vec![CRASH, START]] {
        let mut both = Vec::new();
        for _ in 0..6 {
            both.extend([(A, make(0)), (B, make(0)), (A, Event::Pass { by: SECOND / 4 })]);
        }
        let end = Event::End { slot: 0, commits: true, stop: None };
        goes_well([
            on(A, [make(0), Event::Connect { slot: 1, database: 1 }, Event::Drop { database: 1 }]),
            on(B, [follow(FIRST), LOSE_FILE]),
            on(A, [Event::Pass { by: 7 * SECOND }]),
            on(B, [REPLAY, Event::Promote]),
            on(B, connect(1)),
            on(B, [Event::Recreate { slot: 0, stop: None }, end, make(0)]),
            on(B, restart),
            on(B, connect(0)),
            both,
        ]);
    }
}

/// A horizon is asked for after each of three promotions in a row. The first ID comes as soon as after one. The epilogue checks
/// that.
#[test]
fn promotions_in_a_row_cost_what_one_costs() {
    let ask = Event::Ask { slot: 0, stop: None };
    let takes_over = |at, source| {
        let follow = Event::Follow { source, node: FIRST, keeps_file: false };
        on(at, [follow, REPLAY, Event::Promote, ask])
    };
    goes_well([on(A, [make(0), ask]), takes_over(B, A), takes_over(C, B), takes_over(A, C), takes_over(B, A)]);
}

/// After a start, a session learns of prepared transactions and is stopped anywhere, while another one asks for a horizon.
#[test]
fn a_horizon_waits_for_prepared_transactions_that_another_session_is_learning_of() {
    let prepare = [Event::Begin { slot: 0 }, make(0), Event::Prepare { slot: 0, stop: None }];
    let ask = |slot, stop| Event::Ask { slot, stop };
    let finish = Event::Finish { slot: 1, which: 0, commits: true, stop: None };
    at_each_point(|stop| {
        let world = goes_well([
            on(A, [Event::Pass { by: SECOND / 4 }]),
            on(A, prepare),
            on(A, [CRASH, START, Event::Pass { by: 4 * SECOND }, make(1)]),
            on(A, [ask(0, Some(stop)), ask(1, None), finish, Event::GoOn { slot: 0, stop: None }]),
        ]);
        assert_eq!(made_on(&world, A, 0), 2, "one is prepared");
        world.stops
    });
}
