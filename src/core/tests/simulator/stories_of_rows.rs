//! Stories of lost rows.

use crate::exhaustive::PASS;
use crate::layouts::{HOUR, MORNING, SECOND};
use crate::operator::Ending;
use crate::rows::Watermark;
use crate::stories::{
    A, B, CRASH, FIRST, REPLAY, RESTART, SECOND_NODE, START, at_each_point, follow, goes_well, make, on, wait,
};
use crate::story::Event;
use crate::tailing::MICROSECOND;

const ASK: Event = Event::Ask { proc: 1, stop: None };

fn cover(ago: i64) -> Event {
    Event::Cover { proc: 0, ago, stop: None }
}

/// After a start, an ID of another transaction is covered before any ID is made, and only the page knows the watermark.
#[test]
fn an_id_that_is_covered_first_after_a_start_is_above_all_watermarks() {
    let lose = Event::LoseFile { ending: Ending::InOrder };
    for restart in [vec![RESTART], vec![CRASH, START], vec![lose]] {
        for ago in [0, SECOND, 60 * SECOND] {
            let pass = Event::Pass { by: 5 * SECOND };
            goes_well([on(A, [make(0), ASK]), on(A, restart.clone()), on(A, [cover(ago), pass, cover(ago), ASK])]);
        }
    }
}

/// After a promotion, perhaps under another number, an ID of another transaction is covered before any ID is made.
#[test]
fn an_id_that_is_covered_first_after_a_promotion_is_above_all_watermarks() {
    for node in [FIRST, SECOND_NODE] {
        for ago in [0, SECOND, 60 * SECOND] {
            goes_well([
                on(A, [make(0)]),
                on(B, [follow(node)]),
                on(A, [make(0), ASK]),
                on(B, [REPLAY]),
                on(A, [CRASH]),
                on(B, [Event::Promote, cover(ago), Event::Pass { by: 5 * SECOND }, cover(ago), ASK]),
            ]);
        }
    }
}

/// A watermark is asked for while a new primary waits for the old one. Then it gets another number, and its clock is set back.
#[test]
fn a_watermark_from_before_time_was_granted_binds_the_next_number() {
    let micro = Event::Make { proc: 1, kind: MICROSECOND, count: 1, waits: false, stop: None };
    for wait in [0, SECOND] {
        goes_well([
            on(A, [make(0)]),
            on(B, [follow(FIRST), Event::Promote]),
            on(A, [make(0)]),
            on(B, [Event::Pass { by: wait }, ASK, ASK]),
            on(B, [Event::Step { by: -1000 }, Event::Restart { node: SECOND_NODE }, micro]),
        ]);
    }
}

/// A session has tried to make IDs on a standby with a number of its own, whose clock is behind. It must notice the promotion.
#[test]
fn a_session_from_before_the_promotion_notices_it() {
    let micro = Event::Make { proc: 1, kind: MICROSECOND, count: 1, waits: false, stop: None };
    let follow = Event::Follow { source: A, node: SECOND_NODE, keeps_file: false };
    goes_well([
        on(A, [make(0)]),
        on(B, [follow, Event::Step { by: -SECOND }, micro]),
        on(A, [ASK]),
        on(B, [REPLAY, Event::Promote, micro]),
    ]);
}

/// After a crash, a snapshot sees a prepared transaction as running. The transaction ends before any session has learned of it.
#[test]
fn a_snapshot_from_before_a_prepared_transaction_was_learned_of_waits_for_it() {
    let finish = Event::Finish { proc: 0, which: 0, commits: true, stop: None };
    goes_well([
        on(A, [PASS, Event::Begin { proc: 0 }, make(0), Event::Prepare { proc: 0, stop: None }, CRASH, START]),
        on(A, [PASS, make(1), Event::Look { proc: 1 }, finish, ASK]),
        on(A, [Event::End { proc: 1, commits: true, stop: None }, ASK]),
    ]);
}

/// A prepared transaction is committed after a crash, or by a new primary.
#[test]
fn a_prepared_transaction_holds_watermarks_after_a_crash_and_a_failover() {
    let prepare = [PASS, Event::Begin { proc: 0 }, make(0), Event::Prepare { proc: 0, stop: None }];
    let finish = Event::Finish { proc: 0, which: 0, commits: true, stop: None };
    goes_well([on(A, prepare), on(A, [CRASH, START, wait(0), ASK, finish, ASK])]);
    goes_well([
        on(B, [follow(FIRST)]),
        on(A, prepare),
        on(B, [REPLAY]),
        on(A, [CRASH]),
        on(B, [Event::Promote, wait(0), ASK, finish, ASK]),
    ]);
}

/// The file is lost twice. A watermark is asked for before time is granted, in a database whose page alone knows an earlier watermark.
#[test]
fn a_file_written_before_the_page_was_read_does_not_hide_its_watermark() {
    let lose = Event::LoseFile { ending: Ending::InOrder };
    let stop = Event::Stop { ending: Ending::InOrder };
    let other = Event::Connect { proc: 1, database: 1 };
    goes_well([
        on(A, [lose, ASK, lose, ASK, stop, other]),
        on(A, [START, make(1), Event::Ask { proc: 0, stop: None }]),
    ]);
}

const LOOK: Event = Event::Look { proc: 0 };
const PUBLISH: Event = Event::Publish { proc: 1, stop: None };

fn micro(proc: usize) -> Event {
    Event::Make { proc, kind: MICROSECOND, count: 1, waits: false, stop: None }
}

fn end(proc: usize, stop: Option<u16>) -> Event {
    Event::End { proc, commits: true, stop }
}

/// A standby has rows that no consumer has read yet. Its snapshot is from before a watermark was published, or from after that.
#[test]
fn a_standby_returns_what_was_published() {
    let read = [LOOK, Event::Ask { proc: 0, stop: None }, end(0, None)];
    let world = goes_well([
        on(A, [PASS, PUBLISH, micro(0)]),
        on(B, [follow(FIRST)]),
        on(B, read),
        on(A, [Event::Begin { proc: 0 }, micro(0), micro(1), PUBLISH]),
        on(B, [REPLAY]),
        on(B, read),
    ]);
    let [first, second] = &world.machines[B].replayed[..] else { panic!("each reader is told one") };
    assert!(first.instant < second.instant, "however long a transaction is open");
}

/// Of two transactions that commit, the one with the later transaction ID is in the WAL first. It is not visible yet when a
/// snapshot that sees the other one as ended asks for a watermark.
#[test]
fn a_snapshot_between_two_commits_loses_no_row() {
    at_each_point(|stop| {
        goes_well([
            on(A, [PASS, PUBLISH]),
            on(B, [follow(FIRST)]),
            on(A, [Event::Begin { proc: 1 }, micro(1), Event::Begin { proc: 0 }, micro(0), end(0, Some(stop))]),
            on(B, [REPLAY, LOOK]),
            on(A, [end(1, None), PUBLISH, Event::GoOn { proc: 0, stop: None }]),
            on(B, [REPLAY, Event::Ask { proc: 0, stop: None }]),
        ])
        .stops
    });
}

/// A snapshot of the standby sees the last transaction as ended, and an earlier one as prepared.
#[test]
fn a_snapshot_that_is_older_than_a_published_watermark_loses_no_row() {
    let finish = Event::Finish { proc: 0, which: 0, commits: true, stop: None };
    goes_well([
        on(A, [PASS, Event::Begin { proc: 0 }, micro(0), Event::Prepare { proc: 0, stop: None }, micro(0), PUBLISH]),
        on(B, [follow(FIRST)]),
        on(A, [micro(0)]),
        on(B, [REPLAY, LOOK]),
        on(A, [finish, PUBLISH]),
        on(B, [REPLAY, Event::Ask { proc: 0, stop: None }]),
    ]);
}

/// The primary's clock was ahead when a watermark was published, and is corrected and accepted, perhaps in another database.
#[test]
fn a_published_watermark_that_is_recalled_is_not_returned() {
    for database in [0, 1] {
        for ahead in [SECOND, 60 * SECOND] {
            goes_well([
                on(A, [PASS, make(0), Event::Step { by: ahead }, PUBLISH, Event::SetRight]),
                on(A, [Event::Connect { proc: 0, database }, Event::Accept { proc: 0, stop: None }]),
                on(A, [Event::Connect { proc: 0, database: 0 }, wait(0), PUBLISH]),
                on(B, [follow(FIRST), LOOK, Event::Ask { proc: 0, stop: None }]),
                on(A, [micro(0), wait(0), micro(0)]),
                on(B, [REPLAY]),
            ]);
        }
    }
}

/// A copy of the file has a watermark that was recalled since.
#[test]
fn a_watermark_in_an_older_file_stays_recalled() {
    goes_well([on(
        A,
        [
            Event::Step { by: 30 * SECOND },
            ASK,
            Event::SaveFile,
            Event::SetRight,
            Event::Accept { proc: 1, stop: None },
            Event::RestoreFile,
        ],
    )]);
}

/// The clock is accepted while a session publishes a watermark.
#[test]
fn a_watermark_that_is_recalled_while_it_is_published_is_not_returned() {
    at_each_point(|stop| {
        goes_well([
            on(A, [PASS, make(0), make(1), Event::Step { by: 60 * SECOND }]),
            on(A, [Event::Publish { proc: 1, stop: Some(stop) }, Event::SetRight]),
            on(A, [Event::Accept { proc: 0, stop: None }, Event::GoOn { proc: 1, stop: None }, wait(0)]),
            on(B, [follow(FIRST), LOOK, Event::Ask { proc: 0, stop: None }]),
            on(A, [micro(0), wait(0), micro(0)]),
            on(B, [REPLAY]),
        ])
        .stops
    });
}

/// The clock is accepted while a session asks for a watermark.
#[test]
fn a_watermark_of_an_earlier_generation_is_not_returned() {
    at_each_point(|stop| {
        goes_well([
            on(A, [make(0), Event::Step { by: 60 * SECOND }, make(0), Event::Ask { proc: 1, stop: Some(stop) }]),
            on(
                A,
                [Event::SetRight, Event::Accept { proc: 0, stop: None }, Event::GoOn { proc: 1, stop: None }, wait(0)],
            ),
        ])
        .stops
    });
}

/// The clock is accepted while a session covers an ID or makes one, and a watermark is asked for before the session publishes its
/// bound. The clock is set back after that.
#[test]
fn a_bound_that_is_published_after_an_acceptance_hides_no_watermark() {
    let stopped = |stop| {
        [
            Event::Cover { proc: 0, ago: 0, stop: Some(stop) },
            Event::Make { proc: 0, kind: MICROSECOND, count: 1, waits: false, stop: Some(stop) },
        ]
    };
    for which in 0..2 {
        at_each_point(|stop| {
            goes_well([
                on(A, [make(0), Event::Step { by: 60 * SECOND }, make(1), Event::SetRight]),
                on(A, [stopped(stop)[which], Event::Accept { proc: 1, stop: None }, Event::Pass { by: SECOND }, ASK]),
                on(A, [Event::Step { by: -SECOND / 2 }, Event::GoOn { proc: 0, stop: None }]),
            ])
            .stops
        });
    }
}

/// IDs lead the clock by more than flake.max_lead, so the clock is accepted sooner or later. Rows then come above the clock.
#[test]
fn a_watermark_for_which_no_time_is_granted_is_not_above_the_clock() {
    let ahead = [make(0), Event::Step { by: 3 * HOUR }, make(0), Event::SetRight, make(0)];
    let world = goes_well([on(A, ahead), on(A, [Event::Pass { by: 10 * SECOND }, ASK])]);
    let before = |watermark: &&Watermark| watermark.acceptances == 0;
    let highest = world.machines[A].watermarks.iter().filter(before).map(|watermark| watermark.instant).max();
    assert!(highest.is_some_and(|highest| (MORNING..MORNING + HOUR).contains(&highest)), "{highest:?}");
}

/// A server without a file, whose page has nothing, has begun its ledger, and its clock is set back before a session asks. No
/// time is granted. After a crash, the clock is set back again.
#[test]
fn a_watermark_for_which_no_time_is_granted_lies_in_reserved_time() {
    let back = |by: i64| Event::Step { by: -by };
    at_each_point(|stop| {
        let ask = Event::Ask { proc: 0, stop: Some(stop) };
        goes_well([
            on(
                A,
                [Event::LoseFile { ending: Ending::InOrder }, ask, back(2 * HOUR), Event::GoOn { proc: 0, stop: None }],
            ),
            on(A, [CRASH, back(HOUR), START, micro(0), PASS, micro(0)]),
        ])
        .stops
    });
}

/// An old primary's clock is accepted. Later it starts from the new primary's data with its own file. The new primary's watermarks do
/// not bind it.
#[test]
fn a_server_that_accepted_its_clock_more_often_ignores_watermarks_of_another_one() {
    let ask = Event::Ask { proc: 0, stop: None };
    goes_well([
        on(B, [follow(SECOND_NODE), Event::Promote]),
        on(A, [ask, Event::Step { by: -7 * SECOND }, Event::Accept { proc: 0, stop: None }]),
        on(B, [ask, make(0)]),
        on(A, [Event::Follow { source: B, node: FIRST, keeps_file: true }, Event::Promote, wait(0)]),
    ]);
}

/// The clock is accepted, the file is restored from before, and a watermark is asked for. The earlier watermark is back, and binds.
#[test]
fn a_watermark_in_a_restored_file_binds_again() {
    let ask = Event::Ask { proc: 1, stop: None };
    goes_well([
        on(A, [Event::Step { by: 1000 }, ask, Event::Step { by: -7 * SECOND / 2 }, Event::SaveFile]),
        on(A, [Event::Accept { proc: 1, stop: None }, Event::RestoreFile, ask, RESTART]),
    ]);
}

/// In one database, a new primary announces the watermark of the old one, whose clock was ahead. In another it learns of the recall.
#[test]
fn a_new_primary_that_learns_of_a_recall_keeps_what_it_has_announced() {
    let ask = |proc| Event::Ask { proc, stop: None };
    goes_well([
        on(A, [Event::Step { by: 60 * SECOND }, ask(0)]),
        on(B, [follow(SECOND_NODE)]),
        on(A, [Event::SetRight, Event::Accept { proc: 0, stop: None }, CRASH]),
        on(B, [REPLAY, Event::Connect { proc: 1, database: 1 }, Event::Promote, ask(1), make(0), wait(1)]),
    ]);
}

/// A clock was ahead, and is accepted in one database. After the loss of the file, the server announces in the other database a
/// watermark from before, and learns of the acceptance only after a restart.
#[test]
fn a_restarted_server_that_learns_of_a_recall_keeps_what_it_has_announced() {
    let ask = |proc| Event::Ask { proc, stop: None };
    let other = Event::Connect { proc: 0, database: 1 };
    goes_well([
        on(A, [ask(1), other, Event::Step { by: 7 * SECOND }, make(0), Event::SetRight]),
        on(A, [Event::Accept { proc: 1, stop: None }, Event::LoseFile { ending: Ending::InOrder }, ask(0), RESTART]),
    ]);
}

/// The clock of an old primary was ahead. In the first database of the new one there is no page, so only the file tells that
/// watermarks bind it there, and the page of the other database does not stop IDs that it has begun to make.
#[test]
fn watermarks_that_only_the_file_knows_bind_a_new_primary() {
    let last = Event::Restart { node: SECOND_NODE };
    goes_well([
        on(A, [Event::Step { by: 15 * SECOND }]),
        on(B, [follow(FIRST)]),
        on(A, [Event::Publish { proc: 1, stop: None }]),
        on(B, [REPLAY, Event::Promote, make(0), Event::Drop { database: 0 }, last]),
        on(A, [Event::Follow { source: B, node: (0, 1), keeps_file: false }]),
    ]);
}
