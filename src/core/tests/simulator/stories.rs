//! Stories that had two of the same ID once, or a server that made none, in the product or in the protocol.

use flake_core::ledger::used::MAX_GAPS;

use crate::layouts::{HOUR, LAYOUTS, SECOND};
use crate::operator::Ending;
use crate::oracle::Failure;
use crate::play::{Play, World};
use crate::story::{Event, Story};
use crate::{be_quiet, told};

pub const FIRST: (u32, u32) = (0, 2);
pub const SECOND_NODE: (u32, u32) = (1, 2);
/// Servers.
pub const A: usize = 0;
pub const B: usize = 1;

pub fn make(slot: usize) -> Event {
    Event::Make { slot, kind: 0, count: 1, waits: false, stop: None }
}

/// The same, and waits as long as sessions do.
pub fn wait(slot: usize) -> Event {
    Event::Make { slot, kind: 1, count: 1, waits: true, stop: None }
}

pub fn connect(database: usize) -> [Event; 2] {
    [0, 1].map(|slot| Event::Connect { slot, database })
}

pub fn follow(node: (u32, u32)) -> Event {
    Event::Follow { source: A, node, allows: false, keeps_file: false }
}

pub const RESTART: Event = Event::Restart { node: FIRST, preloads: false };
const ACCEPT: Event = Event::Accept { slot: 0, stop: None };
pub const REPLAY: Event = Event::Replay { most: usize::MAX };
pub const CRASH: Event = Event::Stop { ending: Ending::Crash };
pub const START: Event = Event::Start { preloads: false };

/// The clock comes to where IDs were made, of which this is the one so many before the last; sessions make IDs there.
pub fn again(which: usize, waits: bool) -> Vec<Event> {
    let mut events = vec![Event::ToUsed { which, by: -SECOND / 4, waits }];
    for _ in 0..14 {
        events.extend([make(0), make(1), Event::Pass { by: SECOND / 4 }]);
    }
    events
}

pub fn on(at: usize, events: impl IntoIterator<Item = Event>) -> Vec<(usize, Event)> {
    events.into_iter().map(|event| (at, event)).collect()
}

/// Plays a story in which nothing goes wrong.
pub fn goes_well(events: impl IntoIterator<Item = Vec<(usize, Event)>>) -> World {
    be_quiet();
    let story = Story { events: events.into_iter().flatten().collect() };
    let world = Play::of(&story, false);
    if let Some(Failure(failure)) = &world.failure {
        panic!("{failure}\n{}", told(&story));
    }
    world
}

/// Plays stories that stop a session at its first point, at its second one, and so on, until it has no more. They return how often
/// sessions were stopped.
pub fn at_each_point(story: impl Fn(u16) -> usize) {
    let points = (1..).take_while(|&stop| story(stop) > 0).count();
    assert!(points > 0, "no session was stopped");
}

/// The number of IDs that servers have made before the epilogue, in which clocks are right.
fn made_on(world: &World, at: usize, kind: usize) -> usize {
    world.oracle.made.iter().filter(|made| made.server == at && made.kind == kind).count()
}

/// A horizon is asked for while the clock is ahead, which is corrected and accepted: a new node makes IDs at once.
#[test]
fn a_horizon_that_was_taken_back_binds_no_other_node() {
    let ask = Event::Ask { slot: 0, stop: None };
    let step = Event::Step { by: HOUR };
    let world = goes_well([
        on(A, [make(0), step, make(0), ask, Event::SetRight, Event::Pass { by: 4 * SECOND }, ACCEPT, wait(0)]),
        on(B, [Event::Follow { source: A, node: SECOND_NODE, allows: false, keeps_file: false }, REPLAY]),
        on(B, [Event::Promote, wait(0)]),
    ]);
    let first = world.oracle.made.iter().find(|made| made.server == B).unwrap();
    assert!(first.clock < world.oracle.branches[1].promoted + 6 * SECOND, "{first}");
}

/// Accepting a clock takes back the horizons of another incarnation too, also while time is open.
#[test]
fn an_accepted_clock_is_not_bound_by_the_horizons_of_another() {
    let ask = Event::Ask { slot: 0, stop: None };
    goes_well([
        on(A, [Event::Step { by: 15 * SECOND }, ask, Event::LoseFile { ending: Ending::InOrder }, Event::SetRight]),
        on(A, [Event::Step { by: 5 * SECOND }, Event::Restart { node: SECOND_NODE, preloads: false }, make(1)]),
    ]);
}

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

/// The clock goes back after flake_start_above has returned: no session goes on below that.
#[test]
fn sessions_that_were_connected_start_above_too() {
    let above = Event::StartAbove { slot: 1, ahead: 2 * SECOND, stop: None };
    goes_well([on(A, [make(0), above, Event::Step { by: -3 * SECOND }]), on(A, again(0, true))]);
    // In a transaction that began before, it may; but not in the next.
    let begin = [Event::Begin { slot: 0 }, make(0), above, make(0), Event::End { slot: 0, commits: true, stop: None }];
    goes_well([on(A, begin), on(A, [Event::Step { by: -SECOND }]), on(A, again(0, false))]);
}

/// A session is stopped anywhere while it makes an ID, and flake_start_above is called: it returns when that is made, or none is.
#[test]
fn a_session_that_makes_an_id_while_others_start_above() {
    at_each_point(|stop| {
        let makes = Event::Make { slot: 0, kind: 0, count: 1, waits: false, stop: Some(stop) };
        let above = Event::StartAbove { slot: 1, ahead: 2 * SECOND, stop: None };
        let go_on = Event::GoOn { slot: 0, stop: None };
        let in_time = [make(0), Event::Pass { by: SECOND }, make(0), makes, above, go_on, make(0)];
        let pass = Event::Pass { by: 5 * SECOND };
        let in_new_time = [make(0), pass, make(0), pass, makes, above, go_on, make(0)];
        goes_well([on(A, in_time)]).stops + goes_well([on(A, in_new_time)]).stops
    });
}

/// A database is created anew under its old OID.
#[test]
fn a_page_is_looked_at_not_remembered() {
    let created = Event::NewDatabase { database: 0 };
    goes_well([
        on(A, [wait(0), created]),
        on(B, [follow(FIRST), Event::Step { by: -8 * SECOND }]),
        on(A, [Event::Pass { by: 6 * SECOND }, wait(0), created, make(0), make(1)]),
        on(B, [REPLAY]),
        on(A, [CRASH]),
        on(B, [Event::Promote, make(0)]),
        on(B, again(1, true)),
    ]);
}

/// A transaction drops and creates the extension, makes IDs, and commits or not: then they are not covered after a failover.
#[test]
fn a_creation_that_is_rolled_back() {
    let recreate = Event::Recreate { slot: 0, stop: None };
    for (commits, is_forgiven) in [(true, false), (false, true)] {
        let world = goes_well([
            on(A, [wait(0)]),
            on(B, [follow(FIRST), Event::Step { by: -8 * SECOND }]),
            on(A, [Event::Pass { by: 6 * SECOND }, recreate, make(0), Event::End { slot: 0, commits, stop: None }]),
            on(A, [Event::Exit { slot: 0, stop: None }]),
            on(B, [REPLAY]),
            on(A, [CRASH]),
            on(B, [Event::Promote, make(0)]),
            on(B, again(0, true)),
        ]);
        let forgiven = world.oracle.forgiven[3];
        assert_eq!(forgiven > 0, is_forgiven, "{forgiven}");
    }
    // The server itself knows.
    let rolled_back = [recreate, make(0), Event::End { slot: 0, commits: false, stop: None }, CRASH, START];
    goes_well([on(A, [make(0)]), on(A, rolled_back), on(A, again(0, false))]);
}

/// A new primary looks at a page, drops the extension, and crashes; the page that is created then knows what the file knows.
#[test]
fn a_page_that_was_only_looked_at_before_a_crash() {
    for ending in [Ending::Crash, Ending::Reboot(0)] {
        goes_well([
            on(A, [wait(0)]),
            on(B, [follow(FIRST), Event::Step { by: -8 * SECOND }]),
            on(A, [Event::Pass { by: 6 * SECOND }, wait(0), make(0), make(1)]),
            on(B, [REPLAY]),
            on(A, [CRASH]),
            on(B, [Event::Promote, make(0), Event::Drop { database: 0 }, Event::Stop { ending }, START]),
            on(B, [Event::Recreate { slot: 0, stop: None }, Event::End { slot: 0, commits: true, stop: None }]),
            on(B, again(1, true)),
        ]);
    }
}

/// A session of a new primary is stopped anywhere in its first ID, and another one drops the extension, if the server knows the page.
#[test]
fn a_page_that_is_removed_while_a_session_looks_at_it() {
    let start_above = Event::StartAbove { slot: 1, ahead: 0, stop: None };
    for stop in 1..60 {
        let looks = Event::Make { slot: 1, kind: 0, count: 1, waits: false, stop: Some(stop) };
        goes_well([
            on(B, [follow(FIRST)]),
            on(A, [start_above]),
            on(B, [REPLAY, Event::Promote, looks, Event::Recreate { slot: 0, stop: None }, make(0)]),
        ]);
    }
}

/// A new primary has read the page for a snapshot from when it was a standby only, and the extension is dropped.
#[test]
fn a_page_that_is_removed_after_a_horizon_of_a_standby() {
    let on_b = [Event::Ask { slot: 1, stop: None }, Event::Recreate { slot: 1, stop: None }, make(1)];
    goes_well([
        on(B, [follow(FIRST)]),
        on(A, [Event::Publish { slot: 0, stop: None }]),
        on(B, [Event::Look { slot: 1 }]),
        on(A, [Event::StartAbove { slot: 1, ahead: 0, stop: None }]),
        on(B, [REPLAY, Event::Promote]),
        on(B, on_b),
    ]);
}

/// A session is stopped anywhere while it asks for time, and again when it has written the page; another one has more meanwhile.
#[test]
fn a_page_that_another_session_has_written_meanwhile() {
    let play = |stop, next| {
        let asks = Event::Make { slot: 0, kind: 0, count: 1, waits: false, stop: Some(stop) };
        goes_well([
            on(A, [make(0), make(1)]),
            on(B, [follow(FIRST), Event::Step { by: -8 * SECOND }]),
            on(A, [Event::Pass { by: 5 * SECOND }, asks, Event::Pass { by: 10 * SECOND }, make(1)]),
            on(A, [Event::GoOn { slot: 0, stop: Some(next) }]),
            on(B, [REPLAY]),
            on(A, [CRASH]),
            on(B, [Event::Promote, make(0)]),
            on(B, again(0, true)),
        ])
    };
    at_each_point(|stop| (1..).map(|next| play(stop, next).stops).find(|&stops| stops < 2).unwrap_or_default());
}

/// A session exits, and the clock goes back: the next one in its slot goes on after its last ID.
#[test]
fn a_session_that_exits_is_continued() {
    let exit = Event::Exit { slot: 0, stop: None };
    goes_well([on(A, [make(0), Event::Pass { by: SECOND }, make(0), exit, make(0), exit]), on(A, again(0, false))]);
}

/// A session goes on in another database, in the tick in which its slot's last owner has ended: that is in the page there.
#[test]
fn a_session_that_is_continued_in_another_database() {
    let some = Event::Make { slot: 0, kind: 0, count: 5, waits: false, stop: None };
    goes_well([
        on(A, [wait(0)]),
        on(B, [follow(FIRST), Event::Step { by: -8 * SECOND }]),
        on(A, [Event::Pass { by: 20 * SECOND }, make(0)]),
        on(A, connect(1)),
        on(A, [make(0)]),
        on(B, [REPLAY]),
        on(A, [CRASH]),
        on(B, [Event::Promote]),
        on(B, connect(1)),
        on(B, [some, Event::Pass { by: 3 * SECOND }, Event::ToUsed { which: 0, by: 0, waits: false }, some]),
    ]);
}

/// Another node creates the extension again, and the first one comes back without its file: the page says what it had used.
#[test]
fn a_page_that_another_node_has_created_again() {
    goes_well([
        on(A, [wait(0), Event::Step { by: 60 * SECOND }, make(0), Event::SetRight]),
        on(B, [Event::Follow { source: A, node: SECOND_NODE, allows: false, keeps_file: false }, REPLAY]),
        on(A, [CRASH]),
        on(B, [Event::Promote, wait(0), Event::Recreate { slot: 0, stop: None }]),
        on(B, [Event::End { slot: 0, commits: true, stop: None }, wait(0)]),
        on(A, [Event::Follow { source: B, node: FIRST, allows: false, keeps_file: false }, REPLAY]),
        on(A, [Event::LoseFile { ending: Ending::InOrder }]),
        on(B, [CRASH]),
        on(A, [Event::Promote]),
        on(A, again(2, true)),
    ]);
}

/// A session is terminated anywhere while it asks for time, and the clock goes back: its slot has given up what was granted.
#[test]
fn a_session_that_is_terminated_in_the_middle_of_an_id() {
    at_each_point(|stop| {
        let asks = Event::Make { slot: 0, kind: 0, count: 1, waits: false, stop: Some(stop) };
        let end = [asks, Event::Kill { slot: 0 }];
        goes_well([
            on(A, [make(0), Event::Pass { by: SECOND }, make(0), Event::Pass { by: 3 * SECOND / 2 }]),
            on(A, end),
            on(A, again(0, false)),
        ])
        .stops
    });
}

/// The clock was ahead and accepted, and the file is deleted: there are IDs within five seconds.
#[test]
fn a_file_that_is_lost_after_an_accepted_clock() {
    for used_before in [false, true] {
        let others =
            if used_before { connect(1).into_iter().chain([make(0)]).chain(connect(0)).collect() } else { vec![] };
        let world = goes_well([
            on(A, [make(0), Event::Step { by: HOUR }, make(0)]),
            on(A, others),
            on(A, [Event::SetRight, Event::Pass { by: 4 * SECOND }, ACCEPT, wait(0), Event::Pass { by: 4 * SECOND }]),
            on(A, [wait(0), Event::LoseFile { ending: Ending::InOrder }, wait(0)]),
        ]);
        assert!(
            world.oracle.made.iter().filter(|made| made.kind == 1).take(3).all(|made| made.clock < made.time + SECOND)
        );
        assert!(made_on(&world, A, 1) > 5, "the third is made before the epilogue");
    }
}

/// The old primary was half an hour ahead in one database; the new one jumps an hour ahead, restarts, and is accepted.
#[test]
fn what_a_page_says_counts_also_below_what_is_accepted() {
    for restarts in [false, true] {
        goes_well([
            on(A, [make(0)]),
            on(A, connect(1)),
            on(A, [wait(0)]),
            on(B, [follow(FIRST)]),
            on(A, [Event::Step { by: HOUR / 2 }, make(0), make(1)]),
            on(B, [REPLAY]),
            on(A, [Event::Stop { ending: Ending::InOrder }]),
            on(B, [Event::Promote, wait(0), Event::Step { by: HOUR }, make(0)]),
            on(B, if restarts { vec![RESTART, make(0)] } else { vec![] }),
            on(B, connect(1)),
            on(
                B,
                [
                    wait(0),
                    Event::SetRight,
                    Event::Pass { by: 3 * SECOND },
                    ACCEPT,
                    Event::Pass { by: 3 * SECOND },
                    wait(0),
                ],
            ),
            on(B, again(if restarts { 4 } else { 3 }, true)),
            on(B, again(5, false)),
        ]);
    }
}

/// flake_start_above is called while the clock is further ahead; then the clock is accepted.
#[test]
fn an_accepted_clock_does_not_take_start_above_back() {
    let above = Event::StartAbove { slot: 0, ahead: -HOUR / 2, stop: None };
    for restarts in [false, true] {
        goes_well([
            on(A, [Event::Step { by: HOUR }, make(0)]),
            on(A, if restarts { vec![RESTART, make(0)] } else { vec![] }),
            on(
                A,
                [
                    above,
                    Event::SetRight,
                    Event::Pass { by: 3 * SECOND },
                    ACCEPT,
                    make(0),
                    Event::Pass { by: 3 * SECOND },
                ],
            ),
            on(A, [make(0), Event::Step { by: HOUR / 2 - 10 * SECOND }]),
            on(A, again(0, true)),
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

/// Accepting the clock fails halfway, as the extension is about to be dropped: generators do not begin where the clock was.
#[test]
fn an_acceptance_that_fails_halfway() {
    at_each_point(|stop| {
        goes_well([
            on(A, [Event::Step { by: 30 * SECOND }, make(1), Event::Accept { slot: 1, stop: Some(stop) }]),
            on(A, [Event::SetRight, Event::Pass { by: 7000 }, Event::Begin { slot: 0 }]),
            on(A, [Event::Recreate { slot: 0, stop: None }]),
        ])
        .stops
    });
}

/// After a clock that was ahead was accepted, the file is restored from a copy, and the clock set back.
#[test]
fn a_file_that_was_restored_gives_nothing_back() {
    for ending in [Ending::InOrder, Ending::Crash] {
        goes_well([
            on(
                A,
                [make(0), Event::Step { by: HOUR }, make(0), Event::SetRight, Event::Pass { by: 4 * SECOND }, ACCEPT],
            ),
            on(A, [Event::Pass { by: 3 * SECOND }, make(0), Event::SaveFile, Event::Pass { by: 10 * SECOND }, make(0)]),
            on(A, [make(1), Event::Stop { ending }, Event::RestoreFile]),
            on(A, again(1, false)),
        ]);
    }
}

/// A clock jumps ahead twice: both gaps are free once it is accepted.
#[test]
fn a_clock_that_jumps_twice() {
    let jump = Event::Step { by: 15 * SECOND };
    let world = goes_well([
        on(
            A,
            [wait(0), jump, make(0), jump, make(1), Event::SetRight, Event::Pass { by: 4 * SECOND }, ACCEPT, wait(0)],
        ),
        on(A, again(1, true)),
    ]);
    assert!(world.oracle.made[3].clock < world.oracle.made[1].clock);
}

/// The same, and the file is lost twice meanwhile.
#[test]
fn a_clock_that_jumps_twice_and_files_that_are_lost() {
    let jump = Event::Step { by: 15 * SECOND };
    let lose = Event::LoseFile { ending: Ending::InOrder };
    let late = Event::Make { slot: 1, kind: 0, count: 1, waits: true, stop: None };
    goes_well([on(A, [jump, make(0), jump, make(0), lose, late, Event::Step { by: 3 * SECOND / 2 }, lose, late])]);
}

/// The clock is ahead from the first ID on, and more gaps arise than there is room for: once it is right, the time before is free.
#[test]
fn a_clock_that_is_ahead_before_the_first_id() {
    let mut events = vec![Event::Step { by: 60 * SECOND }, make(0)];
    for _ in 0..MAX_GAPS {
        events.extend([Event::Pass { by: 5 * SECOND }, make(0)]);
    }
    events.extend([Event::SetRight, ACCEPT, Event::Pass { by: SECOND }, make(0), make(1)]);
    assert_eq!(made_on(&goes_well([on(A, events)]), A, 0), MAX_GAPS + 3);
}

/// Of what the exit note and later buffered records had written, a crash of the machine keeps any sectors.
#[test]
fn a_disk_that_tears() {
    let crash = |round: u64| {
        let sectors = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round << 7;
        Event::Stop { ending: Ending::Reboot(sectors) }
    };
    let exit = Event::Exit { slot: 0, stop: None };
    for round in 0..64 {
        goes_well([on(A, [make(0), exit, make(0), make(0), crash(round), START]), on(A, again(0, false))]);
    }
    at_each_point(|stop| {
        let middle = Event::Make { slot: 0, kind: 0, count: 1, waits: false, stop: Some(stop) };
        let story = [make(0), exit, RESTART, middle, crash(stop.into()), START];
        goes_well([on(A, story), on(A, again(0, false))]).stops
    });
}

/// A session is stopped anywhere while it exits, and another one makes IDs: what the exit note gives back is not used.
#[test]
fn an_exit_note_beside_another_session() {
    at_each_point(|stop| {
        let exit = Event::Exit { slot: 0, stop: Some(stop) };
        let go_on = Event::GoOn { slot: 0, stop: None };
        let pass = Event::Pass { by: SECOND / 2 };
        let one = goes_well([on(A, [make(0), exit, pass, make(1), go_on, CRASH, START]), on(A, again(0, false))]);
        // Two exit at once, and a third one comes.
        let other = Event::Exit { slot: 1, stop: Some(stop / 2) };
        let last = Event::GoOn { slot: 1, stop: None };
        let two = goes_well([
            on(A, [make(0), make(1), exit, other, go_on, pass, make(0), last, CRASH, START]),
            on(A, again(0, false)),
        ]);
        // The last one to exit finds what the one has left that has got further and is stopped for good.
        let earlier = [make(1), pass, make(0)];
        let further = goes_well([
            on(A, [pass]),
            on(A, earlier),
            on(A, [exit, Event::Exit { slot: 1, stop: None }, CRASH, START]),
            on(A, again(0, false)),
        ]);
        one.stops + two.stops + further.stops
    });
}

/// A unit of sno that begins unused, but ends in used time, is not gone back to.
#[test]
fn a_unit_that_reaches_into_used_time() {
    let sno = Event::Make { slot: 1, kind: LAYOUTS, count: 6, waits: false, stop: None };
    goes_well([on(
        A,
        [
            make(0),
            Event::Pass { by: 10 * SECOND + 1116 },
            sno,
            Event::Step { by: -2066 },
            ACCEPT,
            Event::Pass { by: 1793 },
            make(0),
            Event::Exit { slot: 1, stop: None },
            Event::Step { by: -19 },
            sno,
        ],
    )]);
}

/// A tick that was used began before time was granted: what an exit note gives back does not hold it.
#[test]
fn a_tick_that_began_before_its_stretch() {
    goes_well([on(
        A,
        [
            Event::Pass { by: SECOND / 4 },
            make(1),
            RESTART,
            Event::Step { by: -250 },
            ACCEPT,
            Event::ToUsed { which: 0, by: -1, waits: false },
            make(1),
        ],
    )]);
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

/// What the old primary has made last had not come across: it is covered while it is less than two seconds.
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
