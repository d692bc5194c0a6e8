//! Generators of a server: their counts and layouts continue in a new era, and each layout has its words.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use flake_core::ledger::host::Server;
use flake_core::ledger::part_time::AHEAD;
use flake_core::ledger::protocol;
use flake_core::sno::UNIT;
use flake_core::{Answer, IdSource, Lanes, Layout, Node, Part, Place, Resumable, SequenceRule, SnoSource, built_in};

mod alone;
use alone::{Alone, NOON, SECOND};

/// Begins a generator that has the first lane.
fn begin<S: IdSource>(alone: &mut Alone, source: S) -> Resumable<S> {
    begin_with(alone, source, 0)
}

/// Begins a generator that has this lane.
fn begin_with<S: IdSource>(alone: &mut Alone, source: S, lane: u64) -> Resumable<S> {
    let lanes = source.lanes(Part::whole(Node::new(0, 1).unwrap()), 122).unwrap();
    let place = Place::find(alone, &source, lanes, lane, 1).unwrap();
    Resumable::begin(alone, source, &place).unwrap()
}

/// Makes this many IDs at an instant.
fn make<S: IdSource>(own: &mut Resumable<S>, alone: &mut Alone, (now, count): (i64, usize), argument: S::Argument) {
    alone.at(now);
    for _ in 0..count {
        let outcome = own.next(alone, |_| (now, Ok(())), argument);
        assert!(matches!(outcome, Ok(Answer::Issue(_))));
    }
}

#[test]
fn ids_of_earlier_eras_are_counted() {
    let mut alone = Alone::new();
    let mut layouts = begin(&mut alone, built_in("twitter").unwrap());
    let mut snos = begin(&mut alone, SnoSource { partition: None });
    make(&mut layouts, &mut alone, (NOON + SECOND, 3), || 0);
    make(&mut snos, &mut alone, (NOON + SECOND, 3), 0);
    let era = layouts.final_progress().era;
    protocol::start_above(&mut alone, NOON + 10 * SECOND).unwrap();
    make(&mut layouts, &mut alone, (NOON + 20 * SECOND, 2), || 0);
    make(&mut snos, &mut alone, (NOON + 20 * SECOND, 2), 0);
    assert_eq!((layouts.issued(), layouts.generator.issued()), (5, 2));
    assert_eq!((snos.issued(), snos.generator.issued()), (5, 2));
    assert!(
        layouts.final_progress().era > era && snos.final_progress().era > era,
        "both generators must be in a new era"
    );
}

/// A layout with the same bits that ends earlier also ends in the next era.
#[test]
fn an_adopted_rule_is_followed_in_a_new_era() {
    let mut alone = Alone::new();
    let twitter = built_in("twitter").unwrap();
    let mut fields = twitter.fields().to_vec();
    fields[0].bits = 39;
    let short = Layout::new("short", twitter.epoch(), 1_000, fields, SequenceRule::Reset).unwrap();
    let end = short.start_of(short.last_tick()) + 1_000;
    assert!(
        end > NOON && short.same_bits(twitter),
        "the short layout must have the bits of twitter, and end after noon"
    );
    let mut own = begin(&mut alone, twitter);
    own.generator.adopt(&short);
    make(&mut own, &mut alone, (NOON + SECOND, 1), || 0);
    protocol::start_above(&mut alone, NOON + 2 * SECOND).unwrap();
    make(&mut own, &mut alone, (NOON + 5 * SECOND, 1), || 0);
    alone.at(end);
    assert_eq!(own.next(&mut alone, |_| (end, Ok(())), || 0), Ok(Answer::Exhausted));
}

/// flake_start_above does not wait for a session that is admitted after it has looked at the transactions. The session drops the
/// rest of its block.
#[test]
fn an_era_that_ends_before_a_session_is_admitted_is_over_for_it() {
    let (mut alone, now) = (Alone::new(), NOON + SECOND);
    let mut own = begin(&mut alone, built_in("twitter").unwrap());
    make(&mut own, &mut alone, (now, 5), || 0);
    assert!(own.generator.clone().next_taken(now, || 0).is_some(), "IDs of the block must be left");
    let admit = |host: &mut Alone| {
        protocol::start_above(host, NOON + 10 * SECOND).unwrap();
        (now, Ok(()))
    };
    assert_eq!(own.next(&mut alone, admit, || 0), Ok(Answer::ClockBehind { until: NOON + 10 * SECOND }));
}

/// Another session has read a later instant, and has taken the next tick's first ID.
fn behind(alone: &mut Alone) -> Resumable<&'static Layout> {
    let twitter = built_in("twitter").unwrap();
    let [mut one, mut other] = [begin(alone, twitter), begin(alone, twitter)];
    make(&mut one, alone, (NOON + SECOND, 1), || 0);
    make(&mut other, alone, (NOON + SECOND + 1000, 1), || 0);
    one
}

/// Reads a clock that advances by 10 microseconds each time, from this instant on. Returns how often it was read, too.
fn next_at(own: &mut Resumable<&Layout>, alone: &mut Alone, from: i64) -> (Answer, i64) {
    let mut readings = 0;
    let admit = |host: &mut Alone| {
        let now = from + 10 * readings;
        readings += 1;
        host.at(now);
        (now, Ok(()))
    };
    (own.next(alone, admit, || 0).unwrap(), readings)
}

#[test]
fn a_clock_that_is_hardly_behind_is_waited_for_at_once() {
    let mut alone = Alone::new();
    let mut own = behind(&mut alone);
    let until = NOON + SECOND + 1000;
    let after = Answer::ClockBehind { until };
    assert_eq!(next_at(&mut own, &mut alone, until - 50), (after, 1));
    let (outcome, readings) = next_at(&mut own, &mut alone, until - 49);
    assert!(matches!(outcome, Answer::Issue(_)), "{outcome:?}");
    assert_eq!(readings, 6);
}

/// A test's clock, or a machine that sleeps.
#[test]
fn a_clock_that_stands_is_not_waited_for_without_end() {
    let mut alone = Alone::new();
    let mut own = behind(&mut alone);
    let (mut readings, now) = (0, NOON + SECOND + 999);
    alone.at(now);
    let admit = |_: &mut Alone| {
        readings += 1;
        (now, Ok(()))
    };
    let outcome = own.next(&mut alone, admit, || 0);
    assert!(matches!(outcome, Ok(Answer::ClockBehind { .. })), "{outcome:?}");
    assert_eq!(readings, 5000);
}

/// A session that begins after the clock has stepped back waits for the layout's last ID as the others do, although its own lane
/// has no IDs yet.
#[test]
fn a_new_session_knows_the_latest_tick_of_its_layout() {
    let mut alone = Alone::new();
    behind(&mut alone);
    alone.at(NOON + SECOND);
    let mut new = begin_with(&mut alone, built_in("twitter").unwrap(), 1);
    let until = NOON + SECOND + 1000;
    let outcome = new.next(&mut alone, |_| (NOON + SECOND, Ok(())), || 0);
    assert!(outcome.as_ref().is_ok_and(|answer| answer.wait().is_some()), "{outcome:?}");
    make(&mut new, &mut alone, (until, 1), || 0);
    // A layout with other bits has no later IDs.
    let mut other = begin_with(&mut alone, built_in("si").unwrap(), 1);
    make(&mut other, &mut alone, (NOON + SECOND, 1), || 0);
}

/// A lane's word that is at the end of a tick counts no ID of the next one, so a new session makes IDs of other lanes in the tick.
#[test]
fn a_new_session_uses_the_rest_of_a_tick_in_which_a_lane_is_used_up() {
    let mut alone = Alone::new();
    let twitter = built_in("twitter").unwrap();
    let mut own = begin(&mut alone, twitter);
    // The last step of a tick.
    let now = NOON + SECOND + 999;
    let Lanes { ids_per_step, steps, .. } = *own.generator.lanes();
    make(&mut own, &mut alone, (now, ids_per_step as usize), || 0);
    let word = alone.lines()[0].of(own.final_progress().era).load(Ordering::Relaxed);
    assert!(word.is_multiple_of(steps * ids_per_step), "the lane must be used up");
    let mut new = begin_with(&mut alone, twitter, 1);
    make(&mut new, &mut alone, (now, 1), || 0);
}

#[test]
fn layouts_have_words_of_their_own_unless_their_bits_are_the_same() {
    let alone = Alone::new();
    let part = Part::whole(Node::new(0, 1).unwrap());
    let claim = |layout: &Layout| {
        let place = Place::find(&alone, &layout, Lanes::new(layout, part).unwrap(), 0, 1);
        place.map(|place| place.claim)
    };
    let [twitter, leaf, sonyflake, instagram] =
        ["twitter", "leaf", "sonyflake", "instagram"].map(|name| built_in(name).unwrap());
    let claims = [twitter, sonyflake, instagram].map(|layout| claim(layout).unwrap());
    assert!(claims[0] != claims[1] && claims[1] != claims[2] && claims[0] != claims[2], "{claims:?}");
    assert_eq!(claim(leaf), Some(claims[0]));
    // Each of them has 32 lanes, so nothing is left; those that have words keep them.
    assert_eq!(claim(built_in("si").unwrap()), None);
    assert_eq!([twitter, sonyflake, instagram].map(claim), claims.map(Some));
}

/// The words of a server have the rule of the first layout.
#[test]
fn the_first_layout_of_the_same_bits_gives_the_rule() {
    let fields = built_in("twitter").unwrap().fields().to_vec();
    let with = |rule| Layout::new("short ticks", NOON - SECOND, 10, fields.clone(), rule).unwrap();
    let (reset, rolling) = (with(SequenceRule::Reset), with(SequenceRule::Rolling));
    for (first, second) in [(&reset, &rolling), (&rolling, &reset)] {
        let mut alone = Alone::new();
        begin(&mut alone, first);
        let mut own = begin(&mut alone, second);
        alone.at(NOON + SECOND);
        let Ok(Answer::Issue(id)) = own.next(&mut alone, |_| (NOON + SECOND, Ok(())), || 0) else { panic!() };
        let lanes = own.generator.lanes();
        let begins_with_the_lane = (id & 0x3f_ffff) % lanes.ids_per_step == 0;
        assert_eq!(begins_with_the_lane, first.rule == SequenceRule::Reset, "{id}: {lanes:?}");
    }
}

/// Each of the last eight eras has words of its own. The ninth era uses a word that had been raised an hour ahead.
#[test]
fn the_words_of_an_era_begin_anew() {
    let mut alone = Alone::new();
    let mut own = begin(&mut alone, built_in("twitter").unwrap());
    make(&mut own, &mut alone, (NOON + 3600 * SECOND, 1), || 0);
    let first = own.final_progress().era;
    alone.at(NOON + 60 * SECOND);
    protocol::accept(&mut alone).unwrap();
    let mut eras = Vec::new();
    for turn in 1..=12 {
        let now = NOON + (60 + 10 * turn) * SECOND;
        make(&mut own, &mut alone, (now, 1), || 0);
        eras.push(own.final_progress().era - first);
        protocol::start_above(&mut alone, now + 5 * SECOND).unwrap();
    }
    assert!(eras.contains(&8), "the word of the first era must be in use again: {eras:?}");
}

/// So no two of them have a sequence number of a unit in common, although their IDs would differ.
#[test]
fn partitions_of_callers_share_words() {
    let mut alone = Alone::new();
    let of = |alone: &mut Alone, partition| begin(alone, SnoSource { partition: Some(partition) });
    let mut sessions = [3, 5, 3, 32_767].map(|partition| of(&mut alone, partition));
    let (now, mut numbers) = (NOON + SECOND, HashSet::new());
    alone.at(now);
    for _ in 0..50 {
        for session in &mut sessions {
            let Ok(Answer::Issue(sno)) = session.next(&mut alone, |_| (now, Ok(())), 0) else { panic!("no sno") };
            assert!(numbers.insert(sno.parts().sequence), "another partition has this number: {:?}", sno.parts());
        }
    }
    // Sessions share its lanes, so they wait as layouts do when the clock steps back.
    let later = now + 20 * UNIT;
    make(&mut sessions[1], &mut alone, (later, 1), 0);
    alone.at(now);
    for partition in [3, 5, 9] {
        let mut session = of(&mut alone, partition);
        for behind in [now, later - UNIT, later - 1] {
            alone.at(behind);
            let outcome = session.next(&mut alone, |_| (behind, Ok(())), 0);
            assert!(outcome.as_ref().is_ok_and(|answer| answer.wait().is_some()), "{outcome:?}");
        }
        make(&mut session, &mut alone, (later, 1), 0);
    }
    assert_eq!(alone.shared().lines.load(Ordering::Relaxed), sessions[0].generator.lanes().count);
}

/// A session makes snos in a partition of the caller's, and later automatic ones. The words keep the progress of the former.
#[test]
fn a_slot_keeps_the_progress_of_automatic_snos_only() {
    let mut alone = Alone::new();
    protocol::join(&mut alone).unwrap();
    let mut of_caller = begin(&mut alone, SnoSource { partition: Some(7) });
    let mut automatic = begin(&mut alone, SnoSource { partition: None });
    make(&mut of_caller, &mut alone, (NOON + SECOND, 1), 0);
    make(&mut automatic, &mut alone, (NOON + 2 * SECOND, 1), 0);
    let all = [automatic.final_progress(), of_caller.final_progress()];
    protocol::leave(&mut alone, Some(&all));
    let mut next = begin(&mut alone, SnoSource { partition: None });
    let outcome = next.next(&mut alone, |_| (NOON + 2 * SECOND, Ok(())), 0);
    assert_eq!(outcome, Ok(Answer::Wait { until: NOON + 2 * SECOND + UNIT }), "the unit has a sno already");
}

/// A unit of sno begins in used time and ends after it. A server that has lost its memory makes no sno in it, also when the clock
/// steps back there.
#[test]
fn a_unit_that_begins_in_used_time_is_not_gone_back_to() {
    let mut alone = Alone::new();
    let mut own = begin(&mut alone, SnoSource { partition: None });
    make(&mut own, &mut alone, (NOON + 3600 * SECOND + UNIT / 2, 1), 0);
    let mut alone = alone.restarted();
    let mut new = begin(&mut alone, SnoSource { partition: None });
    let unit = NOON + 3600 * SECOND + AHEAD;
    make(&mut new, &mut alone, (unit + UNIT, 1), 0);
    alone.at(unit + UNIT - 1);
    let outcome = new.next(&mut alone, |_| (unit + UNIT - 1, Ok(())), 0);
    assert_eq!(outcome, Ok(Answer::ClockBehind { until: unit + UNIT }));
}
