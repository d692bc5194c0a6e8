//! Time only goes up: what is reserved, floors and leads.

use flake_core::Answer;
use flake_core::ledger::durable::page::ensure_page_current;
use flake_core::ledger::durable::record::{Record, Reserved};
use flake_core::ledger::host::Server;
use flake_core::ledger::time::grant::{Grant, RESERVE_AHEAD_MICROS, begin, grant};
use flake_core::ledger::time::lead::{announce, lead};
use flake_core::ledger::time::operator::accept;
use flake_core::ledger::time::shared::generation_of;

mod alone;
use alone::making::{granted, make, server, session};
use alone::{Alone, HOUR, NOON, SECOND, Trouble};

/// A record that another start has left in the page.
fn foreign(reserved: Reserved) -> Vec<u8> {
    Record { reserved, writer: 99, ..Record::default() }.encode(0)
}

const fn until(one: i64, other: i64) -> Reserved {
    Reserved { acceptances: 0, until: [one, other] }
}

#[test]
fn time_is_reserved_three_seconds_ahead_in_the_file_and_in_the_page() {
    let mut alone = server();
    assert_eq!(granted(&mut alone, NOON), Grant::Until(NOON + RESERVE_AHEAD_MICROS / 2));
    for reserved in [alone.in_file(), alone.in_page(), alone.ledger().reserved] {
        assert_eq!((reserved.acceptances, reserved.end()), (0, NOON + RESERVE_AHEAD_MICROS));
    }
}

/// While one session renews it, the others have a third in which they need not ask.
#[test]
fn time_is_renewed_when_a_third_is_left() {
    let mut alone = server();
    granted(&mut alone, NOON);
    for (left, is_renewed) in [(SECOND + 1, false), (SECOND, true)] {
        let now = NOON + RESERVE_AHEAD_MICROS - left;
        alone.at(now);
        granted(&mut alone, now);
        assert_eq!(alone.ledger().reserved.end() > NOON + RESERVE_AHEAD_MICROS, is_renewed, "{left}");
    }
    // A lead of ten seconds: half a second after it is enough.
    let now = NOON + 15 * SECOND;
    alone.at(NOON + 5 * SECOND);
    assert_eq!(granted(&mut alone, now), Grant::Until(now + SECOND / 2 - SECOND / 6));
    assert_eq!(alone.ledger().reserved.end(), now + SECOND / 2);
}

/// However a failed write ends, memory is never above the file.
#[test]
fn a_disk_that_fails_grants_nothing() {
    let mut alone = server();
    granted(&mut alone, NOON);
    let before = alone.ledger();
    alone.disk_fails.set(true);
    alone.at(NOON + 10 * SECOND);
    let era = alone.shared().era();
    assert_eq!(grant(&mut alone, era, NOON + 10 * SECOND), Err(Trouble::Disk));
    assert_eq!(alone.ledger(), before);
    // As long as reserved time remains, sessions make IDs.
    alone.at(NOON + 5 * SECOND / 2);
    assert_eq!(granted(&mut alone, NOON + 5 * SECOND / 2), Grant::Until(NOON + RESERVE_AHEAD_MICROS));
}

#[test]
fn an_id_of_an_instant_needs_reserved_time_after_it() {
    let mut alone = server();
    let mut own = session(&mut alone);
    for now in [NOON, NOON + RESERVE_AHEAD_MICROS - 1, NOON + RESERVE_AHEAD_MICROS, NOON + HOUR] {
        alone.at(now);
        make(&mut alone, &mut own).unwrap();
        for reserved in [alone.in_file(), alone.in_page()] {
            assert!(reserved.end() > now, "{now}: {reserved:?}");
        }
    }
}

/// It may be in a database whose page nobody has read since the file was lost.
#[test]
fn without_a_file_nothing_is_made_in_the_tick_of_the_start() {
    let mut alone = Alone::new();
    alone.at(NOON + 100);
    let mut own = session(&mut alone);
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + 1000));
}

#[test]
fn ids_lead_a_clock_that_has_stepped_back_until_it_has_caught_up() {
    let mut alone = server();
    let mut own = session(&mut alone);
    make(&mut alone, &mut own).unwrap();
    alone.at(NOON - 30 * SECOND);
    assert_eq!(make(&mut alone, &mut own), Ok(NOON));
    alone.pass(20 * SECOND);
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + 10 * SECOND), "at half the speed");
    alone.pass(40 * SECOND - 2000);
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + 30 * SECOND - 1000));
    assert!(alone.led() > alone.now.get());
    alone.pass(4000);
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + 30 * SECOND + 2000));
    // The anchor is cleared, so a steady clock that jumps changes nothing.
    alone.monotonic.set(HOUR);
    assert_eq!(alone.led(), alone.now.get());
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
    let mut alone = server();
    granted(&mut alone, NOON);
    let mut alone = alone.restarted();
    alone.page = Alone::new().page;
    let mut own = session(&mut alone);
    assert_eq!(alone.ledger().floor, NOON + RESERVE_AHEAD_MICROS);
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + RESERVE_AHEAD_MICROS));
}

#[test]
fn a_page_by_another_start_is_counted_before_it_is_used() {
    let mut alone = server();
    let mut own = session(&mut alone);
    make(&mut alone, &mut own).unwrap();
    let era = alone.shared().era();
    alone.page.bytes = Some(foreign(until(NOON + 10 * SECOND, NOON + 60 * SECOND)));
    let mut other = session(&mut alone);
    assert_ne!(alone.shared().era(), era);
    assert_eq!(alone.ledger().floor, NOON + 10 * SECOND);
    assert_eq!(alone.in_file().until, [NOON + 10 * SECOND, NOON + 60 * SECOND], "before memory has it");
    assert_eq!(make(&mut alone, &mut other), Ok(NOON + 10 * SECOND));
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + 10 * SECOND), "sessions of the earlier era, too");
    // Time below the floor is nothing new.
    let era = alone.shared().era();
    alone.page.bytes = Some(foreign(until(NOON + 9 * SECOND, NOON)));
    ensure_page_current(&mut alone).unwrap();
    assert_eq!(alone.shared().era(), era);
    assert!(alone.in_page().contains(&alone.ledger().reserved));
    // Nor is a page that this start has written, such as in a template.
    alone.page.bytes =
        Some(Record { reserved: until(NOON + HOUR, 0), writer: alone.ledger().writer, ..Record::default() }.encode(0));
    ensure_page_current(&mut alone).unwrap();
    assert_eq!(alone.shared().era(), era);
}

/// The page is another one than the session has read.
#[test]
fn a_page_by_another_start_is_counted_before_it_is_written() {
    let mut alone = server();
    let mut own = session(&mut alone);
    let era = alone.shared().era();
    alone.meanwhile.set(Some(foreign(until(NOON + 10 * SECOND, NOON))));
    granted(&mut alone, NOON);
    assert_ne!(alone.shared().era(), era);
    assert_eq!((alone.ledger().floor, alone.in_page()), (NOON + 10 * SECOND, alone.in_file()));
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + 10 * SECOND));
}

#[test]
fn a_page_with_more_acceptances_changes_the_generation() {
    let mut alone = server();
    let mut own = session(&mut alone);
    make(&mut alone, &mut own).unwrap();
    let accepted = Reserved { acceptances: 1, until: [NOON + HOUR, NOON + 4 * SECOND] };
    alone.page.bytes = Some(foreign(accepted));
    ensure_page_current(&mut alone).unwrap();
    assert_eq!((alone.ledger().floor, alone.ledger().reserved.acceptances), (NOON + 4 * SECOND, 1));
    assert_eq!(generation_of(alone.shared().era()), 1);
    assert_eq!(alone.in_file(), accepted);
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + 4 * SECOND));
}

/// After pg_upgrade there is no page and no file, but the last value of a sequence.
#[test]
fn ids_after_pg_upgrade_are_above_what_the_sequence_says() {
    let mut old = server();
    old.at(NOON + HOUR / 2);
    let mut own = session(&mut old);
    make(&mut old, &mut own).unwrap();
    old.at(NOON);
    accept(&mut old).unwrap();
    make(&mut old, &mut own).unwrap();
    let mut new = Alone::new();
    new.page.reserved = old.page.reserved.map(|reserved| Reserved::from_number(reserved.number()));
    new.at(NOON + SECOND);
    let mut own = session(&mut new);
    let made = make(&mut new, &mut own).unwrap();
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
