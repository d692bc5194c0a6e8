//! Stories of new primaries and new numbers.

use crate::layouts::{HOUR, SECOND};
use crate::play::World;
use crate::stories::{
    A, B, C, CRASH, FIRST, LOSE_FILE, REPLAY, RESTART, SECOND_NODE, START, again, at_each_point, connect, follow,
    goes_well, made_on, make, on, wait,
};
use crate::story::Event;

/// The clock was ahead. The server gets another number, and then its own number again.
#[test]
fn a_number_that_comes_back_remembers_its_time() {
    for database in [0, 1] {
        let renumber = |node| Event::Restart { node };
        goes_well([
            on(A, [make(0), Event::Step { by: 200 * SECOND }, make(0), make(1), RESTART, Event::SetRight]),
            on(A, [renumber(SECOND_NODE), wait(0), Event::Pass { by: 3 * SECOND }, wait(0), renumber(FIRST)]),
            on(A, connect(database)),
            on(A, [wait(0)]),
            on(A, again(2, true)),
        ]);
    }
}

/// flake_start_above is given the greatest ID of a dump. Then the server is restarted under another number and under its own again,
/// and used in the same database, or in one whose page does not have the call.
#[test]
fn start_above_binds_under_another_number() {
    let above = Event::StartAbove { proc: 0, ahead: HOUR, stop: None };
    let renumber = |node| Event::Restart { node };
    for (node, database) in [(SECOND_NODE, 0), ((0, 1), 0), (FIRST, 1), (SECOND_NODE, 1)] {
        let before = [Event::Pass { by: SECOND / 4 }, make(0), above];
        goes_well([
            on(A, before),
            on(A, [renumber(node)]),
            on(A, connect(database)),
            on(A, [make(0), wait(1), renumber(FIRST), make(0)]),
        ]);
    }
}

/// flake_start_above is called, and a standby takes over, perhaps with a number of its own.
#[test]
fn start_above_binds_after_a_failover() {
    let above = Event::StartAbove { proc: 0, ahead: HOUR, stop: None };
    for node in [FIRST, SECOND_NODE] {
        goes_well([
            on(A, [make(0)]),
            on(B, [follow(node)]),
            on(A, [above]),
            on(B, [REPLAY]),
            on(A, [CRASH]),
            on(B, [Event::Promote, make(0), wait(1), Event::Restart { node }, make(0)]),
        ]);
    }
}

/// flake_start_above is called twice, with instants in granted time. The page has that time in the mark of the old primary already,
/// which does not concern the new one.
#[test]
fn start_above_in_granted_time_binds_after_a_failover() {
    let above = |ahead| Event::StartAbove { proc: 0, ahead, stop: None };
    let pass = Event::Pass { by: 3 * SECOND / 2 };
    for node in [FIRST, SECOND_NODE] {
        goes_well([
            on(A, [make(0)]),
            on(B, [follow(node)]),
            on(A, [above(SECOND), above(2 * SECOND), CRASH]),
            on(B, [REPLAY, Event::Promote, pass, make(0), pass, make(0)]),
        ]);
    }
}

/// A watermark is asked for after each of three promotions in a row. The first ID comes as soon as after one. The epilogue checks
/// that.
#[test]
fn promotions_in_a_row_cost_what_one_costs() {
    let ask = Event::Ask { proc: 0, stop: None };
    let takes_over = |at, source| {
        let follow = Event::Follow { source, node: FIRST, keeps_file: false };
        on(at, [follow, REPLAY, Event::Promote, ask])
    };
    goes_well([on(A, [make(0), ask]), takes_over(B, A), takes_over(C, B), takes_over(A, C), takes_over(B, A)]);
}

/// After a start, a session learns of prepared transactions and is stopped anywhere, while another one asks for a watermark.
#[test]
fn a_watermark_waits_for_prepared_transactions_that_another_session_is_learning_of() {
    let prepare = [Event::Begin { proc: 0 }, make(0), Event::Prepare { proc: 0, stop: None }];
    let ask = |proc, stop| Event::Ask { proc, stop };
    let finish = Event::Finish { proc: 1, which: 0, commits: true, stop: None };
    at_each_point(|stop| {
        let world = goes_well([
            on(A, [Event::Pass { by: SECOND / 4 }]),
            on(A, prepare),
            on(A, [CRASH, START, Event::Pass { by: 4 * SECOND }, make(1)]),
            on(A, [ask(0, Some(stop)), ask(1, None), finish, Event::GoOn { proc: 0, stop: None }]),
        ]);
        assert_eq!(made_on(&world, A, 0), 2, "one is prepared");
        world.stops
    });
}

/// Makes six IDs of a tick of a quarter of a second.
const SIX: Event = Event::Make { proc: 0, kind: 0, count: 6, waits: false, stop: None };

/// Both servers make most IDs of the same ticks, until the new one no longer leads the clock.
fn both(one: usize, other: usize) -> Vec<(usize, Event)> {
    let tick = [(one, SIX), (other, SIX), (other, Event::Pass { by: SECOND / 4 })];
    std::iter::repeat_n(tick, 32).flatten().collect()
}

fn forgiven(world: &World) -> Vec<u64> {
    world.oracle.forgiven.to_vec()
}

/// The old primary runs on, however much of its WAL the new one has replayed, and however far apart their clocks are. The first ID
/// comes at once, also after a restart.
#[test]
fn a_new_primary_and_the_old_one_make_different_ids() {
    for clock in [-60, -8, 0, 8] {
        for replays in [true, false] {
            for restart in [vec![], vec![RESTART], vec![CRASH, START], vec![LOSE_FILE]] {
                let is_restarted = !restart.is_empty();
                let world = goes_well([
                    on(B, [follow(FIRST)]),
                    on(A, [SIX, Event::Pass { by: 6 * SECOND }, SIX]),
                    if replays { on(B, [REPLAY]) } else { vec![] },
                    on(A, [SIX]),
                    on(B, [Event::Step { by: clock * SECOND }, Event::Promote, SIX]),
                    on(B, restart),
                    both(A, B),
                    on(B, [Event::Step { by: -clock * SECOND }]),
                    both(A, B),
                ]);
                assert_eq!(forgiven(&world), [0; 6]);
                let first = world.oracle.made.iter().find(|made| made.server == B).unwrap();
                assert!(is_restarted || first.time < world.oracle.branches[1].promoted + SECOND / 4, "{first}");
            }
        }
    }
}

/// Two standbys of one primary are promoted, and neither replays the promotion of the other: they have the same turn, if none of
/// them leaves out a number.
#[test]
fn two_standbys_of_one_primary_can_have_the_same_turn() {
    for (numbers, is_forgiven) in [(0, true), (1, false)] {
        let world = goes_well([
            on(B, [follow(FIRST)]),
            on(C, [follow(FIRST), Event::LeaveOut { numbers }]),
            on(A, [SIX, Event::Pass { by: SECOND }]),
            on(B, [REPLAY, Event::Promote]),
            on(C, [REPLAY, Event::Promote]),
            both(B, C),
        ]);
        assert_eq!(forgiven(&world)[4] > 0, is_forgiven);
    }
}

/// The first primary runs on through a cascade of promotions. The fourth one has its turn again, or the third one if a number of
/// timelines was left out.
#[test]
fn a_turn_comes_again_after_four_promotions() {
    let takes_over = |at, source, numbers| {
        let follow = Event::Follow { source, node: FIRST, keeps_file: false };
        on(at, [follow, REPLAY, Event::LeaveOut { numbers }, Event::Promote, SIX])
    };
    let cascade = |numbers: [u32; 4], count: usize| {
        let (mut events, mut source) = (vec![on(A, [SIX])], A);
        for numbers in &numbers[..count] {
            let at = if source == B { C } else { B };
            events.extend([takes_over(at, source, *numbers), both(A, at)]);
            source = at;
        }
        forgiven(&goes_well(events))
    };
    assert_eq!(cascade([0; 4], 3), [0; 6]);
    let again = cascade([0; 4], 4);
    assert!(again[5] > 0 && again[..5] == [0; 5], "{again:?}");
    // Timelines 1, 2, 3 and 5.
    assert_eq!(cascade([0, 0, 1, 0], 2), [0; 6]);
    assert!(cascade([0, 0, 1, 0], 3)[5] > 0);
}

/// A new primary is upgraded, and begins at the first timeline again, where the old primary still is.
#[test]
fn an_upgraded_new_primary_takes_another_turn_than_the_old_one() {
    let promoted = on(B, [follow(FIRST), REPLAY, Event::Promote, SIX, Event::Upgrade]);
    let world = goes_well([on(A, [SIX, Event::Pass { by: SECOND }]), promoted, both(A, B), both(A, B)]);
    assert_eq!(forgiven(&world), [0; 6]);
}
