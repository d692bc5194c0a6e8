//! The calls of superusers, and the limit of a lead.

use flake_core::ledger::durable::record::{Record, Reserved};
use flake_core::ledger::host::{Fault, Server};
use flake_core::ledger::time::grant::{Grant, RESERVE_AHEAD_MICROS, begin, grant};
use flake_core::ledger::time::lead::{announce, lead};
use flake_core::ledger::time::operator::{accept, start_above};
use flake_core::ledger::time::shared::generation_of;

mod alone;
use alone::making::{granted, make, server, session};
use alone::{Alone, HOUR, NOON, SECOND, Trouble};

#[test]
fn a_lead_beyond_the_limit_is_an_error_with_two_ways_out() {
    for by_setting in [true, false] {
        let mut alone = server();
        let mut own = session(&mut alone);
        alone.at(NOON + 3 * HOUR);
        make(&mut alone, &mut own).unwrap();
        alone.at(NOON);
        assert_eq!(make(&mut alone, &mut own), Ok(NOON + 3 * HOUR));
        alone.pass(RESERVE_AHEAD_MICROS);
        let refused = make(&mut alone, &mut own).unwrap_err();
        assert!(matches!(refused, Trouble::Fault(Fault::Lead(lead, HOUR)) if lead > 2 * HOUR), "{refused:?}");
        if by_setting {
            alone.max_lead.set(4 * HOUR);
            assert!(make(&mut alone, &mut own).unwrap() > NOON + 3 * HOUR);
            continue;
        }
        let accepted = accept(&mut alone).unwrap();
        assert_eq!((accepted.from, accepted.is_new), (NOON + RESERVE_AHEAD_MICROS, true));
        assert_eq!(make(&mut alone, &mut own), Ok(NOON + RESERVE_AHEAD_MICROS));
        for reserved in [alone.in_file(), alone.in_page()] {
            assert_eq!((reserved.generation(), reserved.end()), (1, NOON + 2 * RESERVE_AHEAD_MICROS));
        }
    }
}

/// All that time is reserved already.
#[test]
fn a_new_session_leads_no_further_than_the_limit() {
    let mut alone = server();
    alone.at(NOON + HOUR);
    let mut own = session(&mut alone);
    make(&mut alone, &mut own).unwrap();
    alone.at(NOON - SECOND);
    let mut own = session(&mut alone);
    let refused = make(&mut alone, &mut own).unwrap_err();
    assert!(matches!(refused, Trouble::Fault(Fault::Lead(lead, HOUR)) if lead > HOUR), "{refused:?}");
}

/// Both generations are ahead then, and only the setting helps.
#[test]
fn a_clock_is_not_accepted_into_a_generation_that_is_far_ahead() {
    let mut alone = server();
    let mut own = session(&mut alone);
    for _ in 0..2 {
        alone.at(NOON + 3 * HOUR);
        make(&mut alone, &mut own).unwrap();
        alone.at(NOON);
        if alone.ledger().reserved.generation() == 0 {
            accept(&mut alone).unwrap();
        }
    }
    let before = alone.ledger();
    let refused = accept(&mut alone).unwrap_err();
    assert_eq!(refused, Trouble::Fault(Fault::BothLead(3 * HOUR + RESERVE_AHEAD_MICROS, HOUR)));
    assert_eq!(alone.ledger(), before);
    alone.max_lead.set(4 * HOUR);
    make(&mut alone, &mut own).unwrap();
}

/// An operator calls the function in each database, and again if the lead is not over.
#[test]
fn a_clock_is_not_accepted_into_a_generation_that_leads_as_far() {
    let mut alone = server();
    let mut own = session(&mut alone);
    for ahead in [HOUR / 2, HOUR / 4] {
        alone.at(NOON + ahead);
        make(&mut alone, &mut own).unwrap();
        alone.at(NOON);
        if alone.ledger().reserved.generation() == 0 {
            accept(&mut alone).unwrap();
        }
    }
    let before = alone.ledger();
    let refused = accept(&mut alone).unwrap();
    assert_eq!((refused.from, refused.is_new), (NOON + HOUR / 4 + RESERVE_AHEAD_MICROS, false));
    assert_eq!(alone.ledger(), before);
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + HOUR / 4));
    // It helps once the other generation leads less.
    alone.pass(HOUR / 2);
    alone.at(NOON + HOUR);
    make(&mut alone, &mut own).unwrap();
    alone.at(NOON + HOUR / 2 + RESERVE_AHEAD_MICROS);
    assert!(accept(&mut alone).unwrap().is_new);
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + HOUR / 2 + RESERVE_AHEAD_MICROS));
}

#[test]
fn a_clock_that_is_not_led_is_not_accepted() {
    let mut alone = server();
    let mut own = session(&mut alone);
    make(&mut alone, &mut own).unwrap();
    let before = alone.ledger();
    let accepted = accept(&mut alone).unwrap();
    assert_eq!((accepted.from, accepted.is_new), (NOON, false));
    assert_eq!(alone.ledger(), before);
}

/// Less than three seconds above it: a lead of layouts or of snos, a watermark, or the floor of a start.
#[test]
fn a_clock_is_accepted_whatever_is_above_it() {
    for which in 0..4 {
        let mut alone = server();
        let mut own = session(&mut alone);
        make(&mut alone, &mut own).unwrap();
        let era = alone.shared().era();
        match which {
            0 => lead(&alone, era, false, NOON + SECOND),
            1 => lead(&alone, era, true, NOON + SECOND),
            2 => assert_eq!(announce(&alone, era, NOON + SECOND), Some(NOON + SECOND)),
            _ => alone = alone.restarted(),
        }
        let accepted = accept(&mut alone).unwrap();
        assert_eq!((accepted.from, accepted.is_new), (NOON, true), "{which}");
    }
}

#[test]
fn an_acceptance_is_in_the_file_then_in_the_page() {
    let mut alone = server();
    let mut own = session(&mut alone);
    alone.at(NOON + HOUR / 2);
    make(&mut alone, &mut own).unwrap();
    alone.at(NOON);
    let era = alone.shared().era();
    accept(&mut alone).unwrap();
    assert_eq!((alone.in_file().acceptances, alone.in_page().acceptances), (1, 1));
    assert_eq!((generation_of(era), generation_of(alone.shared().era())), (0, 1));
    assert!(alone.shared().era() > era);
    let one = make(&mut alone, &mut own).unwrap();
    assert_eq!(one, NOON);
    // Accepted again, IDs continue above all of the first generation.
    alone.at(NOON + HOUR);
    make(&mut alone, &mut own).unwrap();
    alone.at(NOON);
    accept(&mut alone).unwrap();
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + HOUR / 2 + RESERVE_AHEAD_MICROS));
}

/// Leaves an acceptance in the file whose write has failed in the flush.
fn let_the_flush_fail(alone: &Alone) {
    let accepted = Record { reserved: Reserved { acceptances: 1, ..alone.in_file() }, ..Record::default() };
    let half = 1 - alone.lock(|state| {
        state.file.is_in_doubt = true;
        state.file.half
    });
    let bytes = accepted.encode(1 << 40);
    alone.file.borrow_mut().as_mut().unwrap()[half * 4096..][..bytes.len()].copy_from_slice(&bytes);
}

/// If the write fails halfway, the file may have the acceptance. It counts once a write has succeeded, and until then no time is
/// granted: after a crash, rows could come below a watermark.
#[test]
fn an_acceptance_that_failed_closes_the_time() {
    let mut alone = server();
    let mut own = session(&mut alone);
    make(&mut alone, &mut own).unwrap();
    alone.at(NOON - 60 * SECOND);
    alone.disk_fails.set(true);
    assert_eq!(accept(&mut alone), Err(Trouble::Disk));
    alone.at(NOON);
    let era = alone.shared().era();
    assert_eq!(grant(&mut alone, era, NOON), Err(Trouble::Disk), "although time is reserved");
    assert_eq!(begin(&mut alone).unwrap().limit, i64::MIN, "a generator that begins asks for time");
    alone.disk_fails.set(false);
    assert!(matches!(granted(&mut alone, NOON), Grant::Until(_)));
    assert!(!alone.lock(|state| state.file.is_in_doubt), "the write has replaced what was in doubt");
    let_the_flush_fail(&alone);
    assert_eq!(granted(&mut alone, NOON), Grant::Over);
    assert_eq!((alone.ledger().reserved.generation(), generation_of(alone.shared().era())), (1, 1));
}

/// It says from when on IDs are made, so an acceptance that may be in the file comes into force before.
#[test]
fn start_above_returns_nothing_that_a_failed_acceptance_takes_back() {
    let mut alone = server();
    let mut own = session(&mut alone);
    make(&mut alone, &mut own).unwrap();
    alone.at(NOON - 60 * SECOND);
    assert_eq!(make(&mut alone, &mut own), Ok(NOON), "IDs lead the clock");
    start_above(&mut alone, NOON - HOUR).unwrap();
    let_the_flush_fail(&alone);
    assert_eq!(start_above(&mut alone, NOON - HOUR), Ok((NOON - 60 * SECOND, false)));
    assert_eq!(make(&mut alone, &mut own), Ok(NOON - 60 * SECOND));
}

/// IDs of the generation led the clock when it was in force before, and the steady clock has passed an hour since.
#[test]
fn an_accepted_generation_leads_no_more_than_it_must() {
    let mut alone = server();
    alone.max_lead.set(10 * HOUR);
    let mut own = session(&mut alone);
    for (ahead, back) in [(60 * SECOND, 30 * SECOND), (2 * HOUR, 3 * HOUR / 2)] {
        alone.pass(ahead);
        make(&mut alone, &mut own).unwrap();
        alone.at(alone.now.get() - back);
        make(&mut alone, &mut own).unwrap();
        assert!(alone.led() > alone.now.get(), "the anchor is set");
        accept(&mut alone).unwrap();
        assert_eq!(alone.led(), alone.now.get());
    }
    assert_eq!(make(&mut alone, &mut own), Ok(alone.now.get()));
}

#[test]
fn start_above_raises_both_generations_and_no_acceptance_takes_it_back() {
    let mut alone = server();
    let mut own = session(&mut alone);
    make(&mut alone, &mut own).unwrap();
    let era = alone.shared().era();
    assert_eq!(start_above(&mut alone, NOON + HOUR / 2), Ok((NOON + HOUR / 2, true)));
    assert_ne!(alone.shared().era(), era);
    for reserved in [alone.in_file(), alone.in_page()] {
        assert_eq!(reserved.until, [NOON + HOUR / 2; 2]);
    }
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + HOUR / 2));
    alone.at(NOON + HOUR);
    make(&mut alone, &mut own).unwrap();
    alone.at(NOON);
    assert!(accept(&mut alone).unwrap().is_new);
    assert_eq!(make(&mut alone, &mut own), Ok(NOON + HOUR / 2));
    let era = alone.shared().era();
    assert_eq!(start_above(&mut alone, NOON), Ok((alone.led(), false)), "that is nothing new");
    assert_eq!(alone.shared().era(), era);
}
