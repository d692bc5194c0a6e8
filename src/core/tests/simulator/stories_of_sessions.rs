//! Stories of sessions that stop, exit and have successors.

use crate::layouts::{DAY, HOUR, SECOND, SNO};
use crate::operator::Ending;
use crate::stories::{
    A, LOSE_FILE, RESTART, START, again, at_each_point, connect, goes_well, make, on, snos, snos_again, wait,
};
use crate::story::Event;

/// The clock goes back after flake_start_above has returned. No session continues below its argument.
#[test]
fn sessions_that_were_connected_start_above_too() {
    let above = Event::StartAbove { proc: 1, ahead: 2 * SECOND, stop: None };
    goes_well([on(A, [make(0), above, Event::Step { by: -3 * SECOND }]), on(A, again(0, true))]);
    // A transaction that began before may continue below it, but the next one may not.
    let begin = [Event::Begin { proc: 0 }, make(0), above, make(0), Event::End { proc: 0, commits: true, stop: None }];
    goes_well([on(A, begin), on(A, [Event::Step { by: -SECOND }]), on(A, again(0, false))]);
}

/// The clock is set back to before the first window, and flake_start_above returns. Sessions begin with the window, snos before it, and
/// neither below what was returned.
#[test]
fn what_start_above_returns_is_before_the_first_id() {
    let above = Event::StartAbove { proc: 1, ahead: 0, stop: None };
    goes_well([on(A, [make(0), Event::Step { by: -SECOND / 2 }, above, Event::Pass { by: SECOND }, make(0)])]);
    let early = [Event::Step { by: -5 * SECOND }, above, Event::Pass { by: 9 * SECOND / 2 }, snos(0)];
    goes_well([on(A, [Event::Pass { by: SECOND }, make(0)]), on(A, early)]);
    // It does not hold any more once the clock is set back; the argument does.
    let ahead = Event::StartAbove { proc: 1, ahead: -SECOND, stop: None };
    goes_well([on(A, [ahead, Event::Step { by: -SECOND / 2 }, make(0)])]);
}

/// A session is stopped anywhere while it makes an ID, and flake_start_above is called. The call returns after the ID is made or
/// given up.
#[test]
fn start_above_waits_for_a_session_that_is_making_an_id() {
    at_each_point(|stop| {
        let makes = Event::Make { proc: 0, kind: 0, count: 1, waits: false, stop: Some(stop) };
        let above = Event::StartAbove { proc: 1, ahead: 2 * SECOND, stop: None };
        let next_run = Event::GoOn { proc: 0, stop: None };
        let in_time = [make(0), Event::Pass { by: SECOND }, make(0), makes, above, next_run, make(0)];
        let pass = Event::Pass { by: 5 * SECOND };
        let in_new_time = [make(0), pass, make(0), pass, makes, above, next_run, make(0)];
        goes_well([on(A, in_time)]).stops + goes_well([on(A, in_new_time)]).stops
    });
}

/// flake_start_above is stopped anywhere while it begins an era, and another session makes IDs of a tick that it has used before. The
/// cursors of the era in force still count.
#[test]
fn a_session_makes_ids_while_another_one_begins_an_era() {
    at_each_point(|stop| {
        let above = Event::StartAbove { proc: 1, ahead: 2 * SECOND, stop: Some(stop) };
        let next_run = Event::GoOn { proc: 1, stop: None };
        goes_well([on(A, [make(0), Event::Pass { by: SECOND }, make(0), above, make(0), next_run, make(0)])]).stops
    });
}

/// A session exits, and the clock goes back. The proc's next owner continues after the last ID.
#[test]
fn a_session_that_exits_is_continued() {
    let exit = Event::Exit { proc: 0, stop: None };
    goes_well([on(A, [make(0), Event::Pass { by: SECOND }, make(0), exit, make(0), exit]), on(A, again(0, false))]);
    goes_well([on(A, [snos(0), Event::Pass { by: SECOND }, snos(0), exit]), on(A, snos_again(0))]);
}

/// A session continues in another database where the proc's last owner has stopped. The page there has the time, so it is known when
/// the file is lost and the clock goes back.
#[test]
fn time_that_is_continued_in_another_database_is_in_its_page() {
    for kind in [0, SNO] {
        let some = Event::Make { proc: 0, kind, count: 2, waits: false, stop: None };
        let again = [Event::ToUsed { which: 2, by: 0, waits: false }, some, Event::Pass { by: SECOND / 4 }, some];
        goes_well([
            on(A, [some, Event::Pass { by: 20 * SECOND }, some]),
            on(A, connect(1)),
            on(A, [some, Event::Pass { by: SECOND / 4 }, some]),
            on(A, [LOSE_FILE, Event::Step { by: -8 * SECOND }, some]),
            on(A, again),
        ]);
    }
}

/// The clock was ahead in one database, in a tick that had not begun yet, and flake.mark is lost. Within that tick, a session
/// makes IDs in a database whose page does not know, and exits. The next one in its proc is connected to the first database. It
/// does not continue in the tick, which its page says was used.
#[test]
fn a_tick_that_reaches_into_time_that_another_page_knows_is_not_continued() {
    let of_day = |count| Event::Make { proc: 0, kind: DAY, count, waits: false, stop: None };
    let at = |database| Event::Connect { proc: 0, database };
    let pass = |seconds| Event::Pass { by: seconds * SECOND };
    let eve = Event::Pass { by: 24 * HOUR - 60 * SECOND };
    let ahead = [at(1), Event::Step { by: 100 * SECOND }, of_day(9), Event::SetRight, pass(20), LOSE_FILE];
    let later = [at(0), wait(0), pass(50), of_day(1), at(1), of_day(5)];
    goes_well([on(A, [make(0), eve, make(0)]), on(A, ahead), on(A, later)]);
}

/// A session is terminated anywhere while it makes snos, and the clock goes back, also after a restart. Its proc has given up the granted
/// time.
#[test]
fn a_session_that_is_terminated_in_the_middle_of_an_id_gives_up_its_time() {
    at_each_point(|stop| {
        let makes = Event::Make { proc: 0, kind: SNO, count: 3, waits: false, stop: Some(stop) };
        let end = [snos(0), Event::Pass { by: SECOND }, makes, Event::Kill { proc: 0 }];
        let later = goes_well([on(A, end), on(A, snos_again(0))]);
        let restarted = goes_well([on(A, end), on(A, [RESTART]), on(A, snos_again(0))]);
        later.stops + restarted.stops
    });
}

/// The machine crashes. Any sectors of records that were written and not flushed may be on disk.
#[test]
fn a_record_that_was_not_flushed_may_be_on_disk() {
    let crash = |round: u64| {
        let sectors = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round << 7;
        Event::Stop { ending: Ending::Reboot(sectors) }
    };
    let exit = Event::Exit { proc: 0, stop: None };
    for round in 0..64 {
        goes_well([on(A, [make(0), exit, make(0), make(0), crash(round), START]), on(A, again(0, false))]);
    }
    at_each_point(|stop| {
        let middle = Event::Make { proc: 0, kind: 0, count: 1, waits: false, stop: Some(stop) };
        let story = [make(0), exit, RESTART, middle, crash(stop.into()), START];
        goes_well([on(A, story), on(A, again(0, false))]).stops
    });
}
