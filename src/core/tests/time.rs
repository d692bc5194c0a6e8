//! Time only goes up: what is reserved, floors and leads.

use flake_core::Answer;
use flake_core::ledger::durable::record::{Record, Reserved};
use flake_core::ledger::host::Server;
use flake_core::ledger::time::grant::{Grant, RESERVE_AHEAD_MICROS, begin, grant};
use flake_core::ledger::time::lead::{announce, lead};
use flake_core::ledger::time::operator::accept;

mod alone;
use alone::making::{granted, make, server, session};
use alone::{Alone, HOUR, NOON, SECOND};

#[test]
fn time_is_reserved_three_seconds_ahead_in_the_file_and_in_the_page() {
    server().play("grant 1.5, reserved 3, acceptances 0");
}

/// While one session renews it, the others have a third in which they need not ask.
#[test]
fn time_is_renewed_when_a_third_is_left() {
    let mut alone = server().play("grant, at 1.999999, grant, reserved 3, at 2, grant, reserved-beyond 3, at 5");
    // A lead of ten seconds: half a second after it is enough.
    let now = NOON + 15 * SECOND;
    assert_eq!(granted(&mut alone, now), Grant::Until(now + SECOND / 2 - SECOND / 6));
    alone.play("reserved 15.5");
}

/// However a failed write ends, memory is never above the file. As long as reserved time remains, sessions make IDs.
#[test]
fn a_disk_that_fails_grants_nothing() {
    server().play("grant, note, disk fails, at 10, grant-fails, unchanged, at 2.5, grant 3");
}

#[test]
fn an_id_of_an_instant_needs_reserved_time_after_it() {
    ["0", "2.999999", "3", "1h"]
        .iter()
        .fold(server().play("session"), |alone, now| alone.play(&format!("at {now}, make, reserved-beyond {now}")));
}

/// It may be in a database whose page nobody has read since the file was lost.
#[test]
fn without_a_file_nothing_is_made_in_the_tick_of_the_start() {
    Alone::new().play("at 0.0001, make 0.001");
}

/// They come at half the speed. The anchor is cleared then, so a steady clock that jumps changes nothing.
#[test]
fn ids_lead_a_clock_that_has_stepped_back_until_it_has_caught_up() {
    server().play(
        "make, at -30, make 0, pass 20, make 10, pass 39.998, make 29.999, led, pass 0.004, make 30.002, steady 1h, right",
    );
}

#[test]
fn a_restart_costs_no_time_and_restarts_do_not_add_up() {
    let mut alone = server();
    for round in 0..100 {
        let mut own = session(&mut alone);
        let made = make(&mut alone, &mut own).unwrap();
        let ahead = made - alone.now.get();
        assert!(ahead <= RESERVE_AHEAD_MICROS + SECOND, "{ahead} after {round} restarts");
        assert!(round == 0 || ahead >= 0, "{ahead} after {round} restarts");
        alone = alone.restarted();
        alone.pass(SECOND);
    }
}

#[test]
fn a_start_is_above_the_file_in_a_database_whose_page_has_nothing() {
    server().play("grant, restart, forget-page, session, floor 3, make 3");
}

/// The file has it before memory does, and sessions of the earlier era continue above it, too. Time below the floor is nothing new.
#[test]
fn a_page_by_another_start_is_counted_before_it_is_used() {
    let mut alone = server().play("make, note, foreign 10/60");
    let mut other = session(&mut alone);
    let mut alone = alone.play("new-era, floor 10, in-file 10/60");
    assert_eq!(make(&mut alone, &mut other), Ok(NOON + 10 * SECOND));
    let mut alone = alone.play("make 10, note, foreign 9/0, look, same-era");
    assert!(alone.in_page().contains(&alone.ledger().reserved));
    // Nor is a page that this start has written, such as in a template.
    let reserved = Reserved { acceptances: 0, until: [NOON + HOUR, NOON] };
    alone.page.bytes = Some(Record { reserved, writer: alone.ledger().writer, ..Record::default() }.encode(0));
    alone.play("look, same-era");
}

/// The page is another one than the session has read.
#[test]
fn a_page_by_another_start_is_counted_before_it_is_written() {
    let alone = server().play("session, note, meanwhile 10/0, grant, new-era, floor 10");
    assert_eq!(alone.in_page(), alone.in_file());
    alone.play("make 10");
}

#[test]
fn a_page_with_more_acceptances_changes_the_generation() {
    server().play("make, foreign 1h/4 1, look, floor 4, acceptances 1, in-file 1h/4, make 4");
}

/// After pg_upgrade there is no page and no file, but the last value of a sequence.
#[test]
fn ids_after_pg_upgrade_are_above_what_the_sequence_says() {
    let old = server().play("at 0.5h, make, at 0, accept, make");
    let mut new = Alone::new();
    new.page.reserved = old.page.reserved.map(|reserved| Reserved::from_number(reserved.number()));
    new.at(NOON + SECOND);
    let made = new.make().unwrap();
    assert!((NOON + RESERVE_AHEAD_MICROS..NOON + RESERVE_AHEAD_MICROS + 4 * SECOND).contains(&made), "{}", made - NOON);
    assert_eq!(new.ledger().reserved.generation(), 1);
    assert!(new.in_page().until[0] >= NOON + HOUR / 2 + RESERVE_AHEAD_MICROS, "the other half stays used");
}

/// A session was stopped with a reading of an earlier era, across one acceptance or two.
#[test]
fn requests_of_an_earlier_era_are_dropped() {
    for acceptances in 1..3 {
        let mut alone = server();
        let mut own = session(&mut alone);
        let era = alone.shared().era();
        for before in 0..acceptances {
            alone.at(NOON + before * 60 * SECOND);
            make(&mut alone, &mut own).unwrap();
            alone.at(NOON - 60 * SECOND);
            assert!(accept(&mut alone).unwrap().is_new);
        }
        let before = alone.ledger();
        assert_eq!(grant(&mut alone, era, NOON + 30 * SECOND), Ok(Grant::Over));
        assert_eq!(announce(&alone, era, NOON + 30 * SECOND), None);
        lead(&alone, era, false, NOON + 30 * SECOND);
        assert_eq!((alone.ledger(), alone.led()), (before, alone.now.get()));
        assert!(make(&mut alone, &mut own).unwrap() <= alone.now.get().max(alone.ledger().floor));
    }
}

/// A session that was stopped comes with an earlier instant than another one.
#[test]
fn what_sessions_raise_only_rises() {
    let alone = server();
    let era = alone.shared().era();
    for instant in [NOON + 20 * SECOND, NOON + 10 * SECOND] {
        lead(&alone, era, false, instant);
        assert_eq!(alone.led(), NOON + 20 * SECOND);
        assert_eq!(announce(&alone, era, instant), Some(NOON + 20 * SECOND));
    }
    assert_eq!(announce(&alone, era, NOON), Some(NOON + 20 * SECOND), "although the last one was earlier");
}

#[test]
fn a_generator_begins_with_the_floor_and_what_is_reserved() {
    let mut alone = server();
    granted(&mut alone, NOON);
    let begun = begin(&mut alone).unwrap();
    assert_eq!((begun.era, begun.limit), (alone.shared().era(), NOON + RESERVE_AHEAD_MICROS / 2));
    // Another database, whose page has nothing yet.
    alone.page.bytes = Some(Record::default().encode(0));
    assert_eq!(begin(&mut alone).unwrap().limit, i64::MIN);
    assert_eq!(alone.page.record().unwrap().writer, 0, "the page is written with the first request for time");
}

/// The lane is taken further ahead of the clock than sessions keep pace.
#[test]
fn a_step_back_within_a_tick_is_led() {
    let mut alone = server();
    let mut own = session(&mut alone);
    alone.at(NOON + 900);
    make(&mut alone, &mut own).unwrap();
    alone.at(NOON);
    let answer = own.next(&mut alone, |_, _, _| Ok(()), || 0);
    assert!(matches!(answer, Ok(Answer::Issue(_) | Answer::Ahead { .. })), "{answer:?}");
    let led = alone.led() - alone.now.get();
    assert!((300..450).contains(&led), "less the pace: {led}");
}
