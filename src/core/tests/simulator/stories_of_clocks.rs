//! Stories of clocks that are ahead, and of what is done about that.

use crate::layouts::{HOUR, SECOND, SNO};
use crate::operator::Ending;
use crate::stories::{
    A, ACCEPT, B, CRASH, FIRST, REPLAY, RESTART, SECOND_NODE, START, again, at_each_point, connect, follow, goes_well,
    made_on, make, on, wait,
};
use crate::story::Event;

/// A watermark is asked for while the clock is ahead; the clock is corrected and accepted. A new node makes IDs at once.
#[test]
fn a_recalled_watermark_binds_no_other_node() {
    let ask = Event::Ask { proc: 0, stop: None };
    let step = Event::Step { by: HOUR };
    let world = goes_well([
        on(A, [make(0), step, make(0), ask, Event::SetRight, Event::Pass { by: 4 * SECOND }, ACCEPT, wait(0)]),
        on(B, [Event::Follow { source: A, node: SECOND_NODE, keeps_file: false }, REPLAY]),
        on(B, [Event::Promote, wait(0)]),
    ]);
    let first = world.oracle.made.iter().find(|made| made.server == B).unwrap();
    assert!(first.clock < world.oracle.branches[1].promoted + 6 * SECOND, "{first}");
}

/// The clock was ahead when a watermark was returned, and the file is lost. The page still says that IDs lead.
#[test]
fn a_watermark_outlasts_the_loss_of_the_file() {
    let ask = Event::Ask { proc: 0, stop: None };
    goes_well([
        on(A, [Event::Step { by: 15 * SECOND }, ask, Event::LoseFile { ending: Ending::InOrder }, Event::SetRight]),
        on(A, [Event::Step { by: 5 * SECOND }, Event::Restart { node: SECOND_NODE }, make(1)]),
    ]);
}

/// The clock was accepted in one database, and the file is lost twice. The pages disagree, and each page has the watermarks that
/// readers were returned.
#[test]
fn what_binds_a_server_that_has_lost_its_file_is_in_each_page() {
    let ask = Event::Ask { proc: 1, stop: None };
    let lose = Event::LoseFile { ending: Ending::InOrder };
    let to = |proc, database| Event::Connect { proc, database };
    let later = Event::Make { proc: 0, kind: 0, count: 1, waits: true, stop: None };
    goes_well([
        on(A, [make(0), Event::Step { by: -7 * SECOND }, ask, to(0, 1), ACCEPT, to(0, 0)]),
        on(A, [lose, make(0), to(1, 1), ask]),
        on(A, [lose, make(1), later, make(1)]),
    ]);
}

/// An older file is put back twice, and the server gets another number in between. A page has a watermark that the file lacks, and
/// this start has announced a later one before it reads that page.
#[test]
fn a_page_knows_of_a_watermark_that_the_file_has_forgotten() {
    let ask = |proc| Event::Ask { proc, stop: None };
    let renumber = Event::Restart { node: (1, 2) };
    goes_well([
        on(A, [Event::SaveFile, Event::Connect { proc: 0, database: 1 }, ask(1), Event::RestoreFile, ask(1)]),
        on(A, [renumber, Event::RestoreFile, ask(0)]),
    ]);
}

/// The old primary was half an hour ahead in one database. The new one jumps an hour ahead, is restarted, and its clock is
/// accepted.
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
    let above = Event::StartAbove { proc: 0, ahead: -HOUR / 2, stop: None };
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

/// The flush of an accepted clock fails, so the record may be on disk. It must not lower watermarks: not in a page that is created
/// next, not after a crash, and not under another number.
#[test]
fn an_acceptance_that_failed_recalls_nothing_even_if_it_is_on_disk() {
    let (full, empty) = (Event::DiskFails(true), Event::DiskFails(false));
    let ask = Event::Ask { proc: 1, stop: None };
    at_each_point(|stop| {
        let fails = [Event::Accept { proc: 0, stop: Some(stop) }, full, Event::GoOn { proc: 0, stop: None }, empty];
        let page = goes_well([
            on(A, [Event::Upgrade, wait(1), ask, Event::Step { by: -SECOND }]),
            on(A, fails),
            on(A, [Event::SetRight]),
            on(A, connect(1)),
            on(A, [make(1)]),
        ]);
        let after = |restart: Vec<Event>| {
            let ahead =
                [make(0), Event::Step { by: HOUR }, make(0), ask, Event::SetRight, Event::Pass { by: 4 * SECOND }];
            goes_well([on(A, ahead), on(A, fails), on(A, [ask]), on(A, restart), on(A, [make(0)])])
        };
        let renumbered = Event::Restart { node: SECOND_NODE };
        page.stops + after(vec![CRASH, START]).stops + after(vec![renumbered]).stops
    });
}

/// The clock is set back while it is accepted. The call recalls watermarks before it returns.
#[test]
fn an_acceptance_recalls_watermarks_before_it_returns() {
    let play = |stop, next| {
        let accepts = [Event::Accept { proc: 0, stop: Some(stop) }, Event::Step { by: -SECOND / 2 }];
        goes_well([
            on(A, [Event::Ask { proc: 1, stop: None }]),
            on(A, accepts),
            on(A, [Event::GoOn { proc: 0, stop: Some(next) }, Event::Pass { by: SECOND / 4 }, make(1)]),
        ])
    };
    at_each_point(|stop| (1..).map(|next| play(stop, next).stops).find(|&stops| stops < 2).unwrap_or_default());
}

/// Accepting the clock fails halfway, because the extension is about to be dropped. Generators must not begin where the clock was.
#[test]
fn no_generator_begins_at_a_clock_whose_acceptance_failed() {
    at_each_point(|stop| {
        goes_well([
            on(A, [Event::Step { by: 30 * SECOND }, make(1), Event::Accept { proc: 1, stop: Some(stop) }]),
            on(A, [Event::SetRight, Event::Pass { by: 7000 }, Event::Begin { proc: 0 }]),
            on(A, [Event::Recreate { proc: 0, stop: None }]),
        ])
        .stops
    });
}

/// The clock was ahead and accepted, and the file is deleted. IDs lead the clock by what was reserved at most.
#[test]
fn a_lost_file_after_an_accepted_clock_costs_three_seconds_at_most() {
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
            world
                .oracle
                .made
                .iter()
                .filter(|made| made.kind == 1)
                .take(3)
                .all(|made| made.clock < made.time + 4 * SECOND)
        );
        assert!(made_on(&world, A, 1) > 5, "the third is made before the epilogue");
    }
}

/// After the clock was ahead and accepted, the file is restored from a copy, and the clock is set back.
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

/// A tick of sno begins in free time and ends in used time. A generator must not go back to it.
#[test]
fn a_generator_does_not_go_back_to_a_unit_that_ends_in_used_time() {
    let sno = Event::Make { proc: 1, kind: SNO, count: 6, waits: false, stop: None };
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
            Event::Exit { proc: 1, stop: None },
            Event::Step { by: -19 },
            sno,
        ],
    )]);
}

/// The clock was accepted, and an older copy of the file is put back. A session of another database begins before this server has
/// counted the acceptance.
#[test]
fn an_acceptance_that_an_older_file_does_not_have_is_counted() {
    goes_well([
        on(A, [Event::Step { by: SECOND / 4 }, make(1), make(0), Event::SaveFile]),
        on(A, [Event::Step { by: 30 * SECOND }, make(1), Event::LoseFile { ending: Ending::InOrder }]),
        on(A, [Event::ToUsed { which: 14, by: 0, waits: false }, Event::Step { by: 25 * SECOND }, ACCEPT]),
        on(A, [Event::RestoreFile, Event::Connect { proc: 0, database: 1 }, Event::Pass { by: SECOND / 4 }, make(0)]),
    ]);
}
