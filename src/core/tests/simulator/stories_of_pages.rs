//! Stories of pages that are read, removed and created.

use crate::layouts::{SECOND, SNO};
use crate::operator::Ending;
use crate::stories::{
    A, B, CRASH, FIRST, LOSE_FILE, REPLAY, SECOND_NODE, START, again, at_each_point, follow, goes_well, make, on, wait,
};
use crate::story::Event;

/// A database is created again under its old OID. Then the server loses its file, and its clock is behind.
#[test]
fn a_page_is_looked_at_not_remembered() {
    let created = Event::NewDatabase { database: 0 };
    goes_well([
        on(A, [wait(0), created]),
        on(A, [Event::Pass { by: 6 * SECOND }, wait(0), created, make(0), make(1)]),
        on(A, [LOSE_FILE, Event::Step { by: -8 * SECOND }, make(0)]),
        on(A, again(1, true)),
    ]);
}

/// A transaction drops and creates the extension, makes IDs, and commits or not. If not, only the file covers the IDs.
#[test]
fn ids_of_a_rolled_back_creation_are_remembered_by_their_server_only() {
    let recreate = Event::Recreate { proc: 0, stop: None };
    for (commits, is_forgiven) in [(true, false), (false, true)] {
        // The server loses its file, and its clock is behind.
        let world = goes_well([
            on(A, [wait(0)]),
            on(A, [Event::Pass { by: 6 * SECOND }, recreate, make(0), Event::End { proc: 0, commits, stop: None }]),
            on(A, [LOSE_FILE, Event::Step { by: -8 * SECOND }, make(0)]),
            on(A, again(0, true)),
        ]);
        let forgiven = world.oracle.forgiven[2];
        assert_eq!(forgiven > 0, is_forgiven, "{forgiven}");
    }
    // The server itself remembers the IDs.
    let rolled_back = [recreate, make(0), Event::End { proc: 0, commits: false, stop: None }, CRASH, START];
    goes_well([on(A, [make(0)]), on(A, rolled_back), on(A, again(0, false))]);
}

/// flake_start_above fails, but its record may be on disk. No page has its argument, so IDs continue at once. The epilogue checks
/// that.
#[test]
fn ids_continue_at_once_after_start_above_has_failed() {
    let above = |ahead| Event::StartAbove { proc: 0, ahead, stop: None };
    let fails = [Event::DiskFails(true), above(2 * SECOND), Event::DiskFails(false)];
    goes_well([on(A, [Event::Upgrade, above(0)]), on(A, fails)]);
}

/// A session has asked for time in a transaction that created the extension and is rolled back, and continues. Then an older copy of
/// flake.mark is put back.
#[test]
fn a_session_does_not_rely_on_a_page_that_was_rolled_back() {
    for kind in [0, SNO, SNO + 1] {
        let some = Event::Make { proc: 0, kind, count: 2, waits: false, stop: None };
        goes_well([
            on(A, [Event::Recreate { proc: 0, stop: None }, Event::SaveFile, some]),
            on(A, [Event::End { proc: 0, commits: false, stop: None }, Event::Pass { by: SECOND / 4 }, some]),
            on(A, [Event::RestoreFile, Event::ToUsed { which: 0, by: 0, waits: false }, some]),
        ]);
    }
}

/// flake_start_above fails, and its record is in the file without a flush. After a restart, a call with an earlier instant succeeds.
/// Then the page is dropped, and the machine crashes.
#[test]
fn start_above_does_not_rely_on_a_record_whose_flush_has_failed() {
    let above = |ahead| Event::StartAbove { proc: 0, ahead, stop: None };
    for sectors in [0, 0x1000138018a9082] {
        goes_well([
            on(A, [Event::DiskFails(true), above(20), Event::Stop { ending: Ending::InOrder }, START]),
            on(A, [Event::DiskFails(false), above(0)]),
            on(A, [Event::Drop { database: 0 }, Event::Stop { ending: Ending::Reboot(sectors) }, START]),
        ]);
    }
}

/// A server that has lost its file reads a page, drops the extension, and crashes. The page that is created then contains what the new
/// file knows.
#[test]
fn a_page_created_after_a_crash_has_what_the_file_knows() {
    for ending in [Ending::Crash, Ending::Reboot(0)] {
        goes_well([
            on(A, [wait(0), Event::Pass { by: 6 * SECOND }, wait(0), make(0), make(1)]),
            on(A, [LOSE_FILE, Event::Step { by: -8 * SECOND }, make(0)]),
            on(A, [Event::Drop { database: 0 }, Event::Stop { ending }, START]),
            on(A, [Event::Recreate { proc: 0, stop: None }, Event::End { proc: 0, commits: true, stop: None }]),
            on(A, again(1, true)),
        ]);
    }
}

/// A session of a new primary is stopped anywhere in its first ID, and another one drops and creates the extension.
#[test]
fn a_page_removed_while_a_session_reads_it_loses_no_used_time() {
    let start_above = Event::StartAbove { proc: 1, ahead: 0, stop: None };
    for stop in 1..60 {
        let looks = Event::Make { proc: 1, kind: 0, count: 1, waits: false, stop: Some(stop) };
        goes_well([
            on(B, [follow(FIRST)]),
            on(A, [start_above]),
            on(B, [REPLAY, Event::Promote, looks, Event::Recreate { proc: 0, stop: None }, make(0)]),
        ]);
    }
}

/// A new primary has read the page only for a snapshot from when it was a standby, and the extension is dropped.
#[test]
fn a_page_removed_after_a_watermark_of_a_standby_loses_no_used_time() {
    let on_b = [Event::Ask { proc: 1, stop: None }, Event::Recreate { proc: 1, stop: None }, make(1)];
    goes_well([
        on(B, [follow(FIRST)]),
        on(A, [Event::Publish { proc: 0, stop: None }]),
        on(B, [Event::Look { proc: 1 }]),
        on(A, [Event::StartAbove { proc: 1, ahead: 0, stop: None }]),
        on(B, [REPLAY, Event::Promote]),
        on(B, on_b),
    ]);
}

/// A session is stopped anywhere while it asks for time, and again after it has written the page. Another one gets more time
/// meanwhile. Then the server loses its file, and its clock is behind.
#[test]
fn a_session_keeps_the_later_time_that_another_one_has_written() {
    let play = |stop, next| {
        let asks = Event::Make { proc: 0, kind: 0, count: 1, waits: false, stop: Some(stop) };
        goes_well([
            on(A, [make(0), make(1), Event::Pass { by: 5 * SECOND }, asks, Event::Pass { by: 10 * SECOND }, make(1)]),
            on(A, [Event::GoOn { proc: 0, stop: Some(next) }]),
            on(A, [Event::LoseFile { ending: Ending::Crash }, Event::Step { by: -8 * SECOND }, make(0)]),
            on(A, again(0, true)),
        ])
    };
    at_each_point(|stop| (1..).map(|next| play(stop, next).stops).find(|&stops| stops < 2).unwrap_or_default());
}

/// A server whose clock was ahead makes IDs under another number, and the extension is created again. When the server has its first
/// number back, its file still has the used time of that.
#[test]
fn a_file_keeps_the_used_time_of_another_number() {
    let restart = |node| Event::Restart { node };
    goes_well([
        on(A, [wait(0), Event::Step { by: 60 * SECOND }, make(0), Event::SetRight, restart(SECOND_NODE), wait(0)]),
        on(A, [Event::Recreate { proc: 0, stop: None }, Event::End { proc: 0, commits: true, stop: None }]),
        on(A, [restart(FIRST)]),
        on(A, again(1, true)),
    ]);
}

/// A server whose clock was ahead creates the extension again under another number. When it has its number back, it has lost its file. The
/// new page has the used time of that number.
#[test]
fn a_page_created_under_another_number_has_the_used_time_of_the_first() {
    let restart = |node| Event::Restart { node };
    goes_well([
        on(A, [wait(0), Event::Step { by: 60 * SECOND }, make(0), Event::SetRight, restart(SECOND_NODE)]),
        on(A, [Event::Recreate { proc: 0, stop: None }, Event::End { proc: 0, commits: true, stop: None }]),
        on(A, [restart(FIRST), LOSE_FILE]),
        on(A, again(0, true)),
    ]);
}
