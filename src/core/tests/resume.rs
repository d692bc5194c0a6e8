//! Generators of a server: they begin again in a new era, lead a clock that is behind, and each layout has its cursors.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use flake_core::ledger::host::Server;
use flake_core::ledger::time::grant::RESERVE_AHEAD_MICROS;
use flake_core::ledger::time::operator::{accept, start_above};
use flake_core::sno::TICK;
use flake_core::{Answer, Definition, IdSource, Layout, Node, Part, Place, Resumable, SnoSource, built_in};

mod alone;
use alone::{Alone, HOUR, NOON, SECOND};

/// Begins a generator that has the first lane.
fn begin<S: IdSource>(alone: &mut Alone, source: S) -> Resumable<S> {
    let node = Node::new(0, 1).unwrap();
    let lanes = [0, 1].map(|generation| source.lanes(Part::in_turn(node, 0, generation)).unwrap());
    let place = Place::find(alone, &source, lanes, 0, 1).unwrap();
    Resumable::begin(alone, source, &place).unwrap()
}

/// Asks for an ID where the clock is.
fn next<S: IdSource>(own: &mut Resumable<S>, alone: &mut Alone, argument: S::Argument) -> Answer<S::Id> {
    own.next(alone, |_, _, _| Ok(()), argument).unwrap()
}

/// Returns when the tick of a layout's ID began.
fn start(layout: &Layout, answer: Answer) -> i64 {
    match answer {
        Answer::Issue(id) => layout.start_of(layout.unpack(id).unwrap().tick),
        answer => panic!("{answer:?}"),
    }
}

/// Makes this many IDs at an instant. Returns the last one.
fn make<S: IdSource>(
    own: &mut Resumable<S>,
    alone: &mut Alone,
    (now, count): (i64, usize),
    argument: S::Argument,
) -> Answer<S::Id> {
    alone.at(now);
    let made = (0..count).map(|_| {
        loop {
            match next(own, alone, argument) {
                // IDs that lead the clock keep pace, too.
                Answer::Ahead { until } => drop(alone.pass(2 * (until - alone.led()).max(1))),
                answer => break answer,
            }
        }
    });
    made.last().unwrap()
}

#[test]
fn ids_of_earlier_eras_are_counted() {
    let mut alone = Alone::new();
    let mut layouts = begin(&mut alone, built_in("twitter").unwrap());
    let mut snos = begin(&mut alone, SnoSource { partition: None });
    make(&mut layouts, &mut alone, (NOON + SECOND, 3), || 0);
    make(&mut snos, &mut alone, (NOON + SECOND, 3), 0);
    let era = alone.shared().era();
    start_above(&mut alone, NOON + 10 * SECOND).unwrap();
    assert!(layouts.is_of(era) && alone.shared().era() > era);
    make(&mut layouts, &mut alone, (NOON + 20 * SECOND, 2), || 0);
    make(&mut snos, &mut alone, (NOON + 20 * SECOND, 2), 0);
    assert_eq!((layouts.issued(), layouts.generator.issued()), (5, 2));
    assert_eq!((snos.issued(), snos.generator.issued()), (5, 2));
    assert!(layouts.is_of(alone.shared().era()) && snos.is_of(alone.shared().era()));
}

/// flake_start_above does not wait for a session that is admitted after it has looked at the transactions. The session drops the
/// rest of its block.
#[test]
fn an_era_that_ends_before_a_session_is_admitted_is_over_for_it() {
    let mut alone = Alone::new();
    let mut own = begin(&mut alone, built_in("twitter").unwrap());
    make(&mut own, &mut alone, (NOON + SECOND, 5), || 0);
    assert!(own.generator.clone().try_next(NOON + SECOND, || 0).is_some(), "IDs of the block must be left");
    let admit = |host: &mut Alone, _, _| {
        start_above(host, NOON + 10 * SECOND).unwrap();
        Ok(())
    };
    let answer = own.next(&mut alone, admit, || 0).unwrap();
    assert_eq!(start(built_in("twitter").unwrap(), answer), NOON + 10 * SECOND);
}

/// The same of a session that does not ask the ledger.
#[test]
fn a_session_of_an_earlier_era_makes_no_id_without_asking() {
    let mut alone = Alone::new();
    let mut own = begin(&mut alone, built_in("twitter").unwrap());
    make(&mut own, &mut alone, (NOON + SECOND, 1), || 0);
    let admitted = |ends_an_era: bool| {
        own.admitted(
            &alone,
            |_| NOON + SECOND,
            |_, _| {
                if ends_an_era {
                    alone.shared().begin_era(0);
                }
                true
            },
        )
    };
    assert_eq!([false, true, false].map(admitted), [Some(NOON + SECOND), None, None]);
}

/// A layout whose ticks last an hour does not let the others lead by an hour after a restart; it waits for its next tick.
#[test]
fn ticks_of_a_second_or_more_are_not_led_to_from_a_floor() {
    let layout = |tick: &str| {
        let json = format!(r#"{{"like": "base64id", "epoch": "2020-01-01T00:00:00Z", "tick": "{tick}"}}"#);
        Definition::from_json("made", &json).unwrap().layout("made").unwrap()
    };
    for (tick, leads) in [("999ms", true), ("1s", false), ("3600s", false)] {
        let made = layout(tick);
        let mut alone = Alone::new();
        let mut own = begin(&mut alone, &made);
        alone.at(NOON + 1);
        let answer = next(&mut own, &mut alone, || 0);
        let first = made.start_of(made.tick_at(NOON).unwrap() + 1);
        match answer {
            Answer::Issue(_) => assert!(leads, "{tick}"),
            answer => assert_eq!((answer, leads), (Answer::Closed { until: first }, false), "{tick}"),
        }
        assert_eq!(alone.led() > alone.now.get(), leads);
        // They do lead where the clock has stepped back.
        make(&mut own, &mut alone, (first + HOUR, 1), || 0);
        assert_eq!(
            start(&made, make(&mut own, &mut alone, (first + HOUR - SECOND, 1), || 0)),
            made.start_of(made.tick_at(first + HOUR).unwrap())
        );
    }
}

/// They are led to the floor, where the clock is far behind it.
#[test]
fn long_ticks_are_led_to_the_floor() {
    let json = r#"{"like": "base64id", "epoch": "2020-01-01T00:00:00Z", "tick": "1s"}"#;
    let made = Definition::from_json("made", json).unwrap().layout("made").unwrap();
    let mut alone = Alone::new();
    let mut own = begin(&mut alone, &made);
    alone.at(NOON - HOUR / 2);
    assert_eq!(next(&mut own, &mut alone, || 0), Answer::Closed { until: NOON + SECOND });
    assert_eq!(alone.led(), NOON + 1, "the floor of a start without a file");
}

/// So no two of them have a sequence number of a tick in common, although their IDs would differ.
#[test]
fn partitions_of_callers_share_cursors() {
    let mut alone = Alone::new();
    let mut sessions = [3, 5, 3, 32_767].map(|partition| begin(&mut alone, SnoSource { partition: Some(partition) }));
    let mut numbers = HashSet::new();
    alone.at(NOON + SECOND);
    for _ in 0..50 {
        for session in &mut sessions {
            let Answer::Issue(sno) = next(session, &mut alone, 0) else { panic!("no sno") };
            assert!(numbers.insert(sno.parts().sequence), "another partition has this number: {:?}", sno.parts());
        }
    }
    assert_eq!(alone.shared().lines.load(Ordering::Relaxed), sessions[0].generator.lanes().count);
    begin(&mut alone, SnoSource { partition: None });
    assert!(alone.shared().lines.load(Ordering::Relaxed) > sessions[0].generator.lanes().count);
}

/// Snos of all sessions go back together, once. Layouts lead meanwhile, and snos do not.
#[test]
fn a_step_back_toggles_the_tick_tock_bit_once() {
    let mut alone = Alone::new();
    let source = SnoSource { partition: None };
    let mut snos = [begin(&mut alone, source), begin(&mut alone, source)];
    let mut layouts = begin(&mut alone, built_in("twitter").unwrap());
    alone.at(NOON + 60 * SECOND);
    let mut sno = |which: usize, alone: &mut Alone| match next(&mut snos[which], alone, 0) {
        Answer::Issue(sno) => (sno.instant(), sno.parts().tick_tock),
        answer => panic!("{answer:?}"),
    };
    assert_eq!(sno(0, &mut alone), (NOON + 60 * SECOND, false));
    make(&mut layouts, &mut alone, (NOON + 60 * SECOND, 1), || 0);
    alone.at(NOON + 30 * SECOND);
    let made = make(&mut layouts, &mut alone, (NOON + 30 * SECOND, 1), || 0);
    assert_eq!(start(built_in("twitter").unwrap(), made), NOON + 60 * SECOND);
    assert_eq!([0, 1].map(|which| sno(which, &mut alone)), [(NOON + 30 * SECOND, true); 2]);
    // The clock steps back again, to where the other bit was not used. It is not known that it was not.
    alone.at(NOON + 20 * SECOND);
    assert_eq!([0, 1].map(|which| sno(which, &mut alone)), [(NOON + 30 * SECOND, true); 2]);
    alone.pass(100 * SECOND);
    assert_eq!(sno(0, &mut alone), (NOON + 120 * SECOND, true));
}

/// A session that was stopped has read the time before a tick, in which another one has made a sno since. The clock has stepped back
/// within the tick, which lets no sno go back.
#[test]
fn a_stale_reading_toggles_nothing() {
    let mut alone = Alone::new();
    let source = SnoSource { partition: None };
    let [mut one, mut other] = [begin(&mut alone, source), begin(&mut alone, source)];
    let tick = NOON + SECOND;
    make(&mut one, &mut alone, (NOON + SECOND / 2, 1), 0);
    make(&mut other, &mut alone, (tick + 3000, 1), 0);
    alone.at(tick - 1);
    let admit = |host: &mut Alone, _, now| {
        if now < tick {
            host.at(tick);
        }
        Ok(())
    };
    let answer = one.next(&mut alone, admit, 0).unwrap();
    assert!(matches!(answer, Answer::Issue(sno) if !sno.parts().tick_tock), "{answer:?}");
    assert_eq!(alone.lines()[0].cursor(alone.shared().era(), 1).load(Ordering::Relaxed), 0);
}

/// A session that was stopped reads the clock again, and finds that the cursor was right. Before it continues, another one makes a sno of a
/// later tick.
#[test]
fn a_cursor_that_was_raised_after_a_fresh_reading_toggles_nothing() {
    let mut alone = Alone::new();
    let source = SnoSource { partition: None };
    let [mut one, mut other] = [begin(&mut alone, source), begin(&mut alone, source)];
    let tick = NOON + SECOND;
    make(&mut one, &mut alone, (NOON + SECOND / 2, 1), 0);
    make(&mut other, &mut alone, (tick, 1), 0);
    let cursor = alone.lines()[0].cursor(alone.shared().era(), 0).load(Ordering::Relaxed);
    alone.at(tick - 1);
    let admit = |host: &mut Alone, _, now| {
        if now < tick {
            let later = cursor + 2 * other.generator.lanes().size();
            host.at(tick + TICK - 1).after_reading.set(Some((later, tick + 2 * TICK)));
        }
        Ok(())
    };
    let answer = one.next(&mut alone, admit, 0).unwrap();
    let Answer::Issue(sno) = answer else { panic!("{answer:?}") };
    assert_eq!((sno.instant(), sno.parts().tick_tock), (tick + 2 * TICK, false));
}

/// Snos lead the clock after a restart too, and toggle nothing: neither then nor when the clock has passed the floor.
#[test]
fn a_restart_toggles_nothing() {
    let mut alone = Alone::new();
    let mut own = begin(&mut alone, SnoSource { partition: None });
    make(&mut own, &mut alone, (NOON + HOUR, 1), 0);
    let mut alone = alone.restarted();
    let mut own = begin(&mut alone, SnoSource { partition: None });
    let mut last = 0;
    for _ in 0..800 {
        let Answer::Issue(sno) = next(&mut own, &mut alone, 0) else { panic!("no sno") };
        assert!(sno.instant() >= last && !sno.parts().tick_tock, "{:?}", sno.parts());
        last = sno.instant();
        alone.pass(10_000);
    }
    assert_eq!(last, NOON + HOUR + 799 * 10_000 / TICK * TICK);
    assert!(last > NOON + HOUR + RESERVE_AHEAD_MICROS);
}

/// Both generations have cursors, which only rise.
#[test]
fn an_acceptance_takes_other_cursors() {
    let mut alone = Alone::new();
    let mut own = begin(&mut alone, built_in("twitter").unwrap());
    make(&mut own, &mut alone, (NOON + HOUR / 2, 1), || 0);
    let era = alone.shared().era();
    let cursor = |alone: &Alone, era| alone.lines()[0].cursor(era, 0).load(Ordering::Relaxed);
    let of_first = cursor(&alone, era);
    alone.at(NOON);
    accept(&mut alone).unwrap();
    let made = make(&mut own, &mut alone, (NOON, 1), || 0);
    assert_eq!(start(built_in("twitter").unwrap(), made), NOON);
    assert_eq!(cursor(&alone, era), of_first);
    assert!((1..of_first).contains(&cursor(&alone, alone.shared().era())));
}
