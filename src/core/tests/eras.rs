//! The ledger by itself: its floor, marks, eras and windows. What sessions make of them is in the model.

use flake_core::timeline::{AHEAD, MARGIN, Stretch, Timeline};
use flake_core::{
    Answer, FinalProgress, Generator, Ledger, Node, Progress, Share, Slot, SlotProgress, Start, Window, built_in,
};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const NOON: i64 = 1_780_000_000 * SECOND;

#[test]
fn eras_begin_where_time_is_left_out() {
    let new = Ledger::new(NOON);
    assert_eq!((new.floor(), new.mark(), new.greatest_mark()), (NOON + 1, NOON + 1 + MARGIN, NOON + 1 + MARGIN));
    let extended = new.extended(NOON + SECOND, NOON + SECOND + 1_000).unwrap();
    assert_eq!((extended.era(), extended.floor()), (0, NOON + 1));
    assert_eq!(extended.granted_until(), NOON + SECOND + AHEAD);
    let raised = extended.raised_to(NOON + HOUR);
    assert_eq!((raised.era(), raised.floor(), raised.granted_until()), (1, NOON + HOUR, NOON + HOUR));
    assert_eq!(raised.accepted(NOON), (raised, NOON + HOUR), "only its end has to pass");

    // The clock was ahead for an hour.
    let ahead = new.extended(NOON + HOUR, NOON + HOUR + 1_000).unwrap();
    let (back, from) = ahead.accepted(NOON + SECOND);
    assert_eq!((back.era(), back.floor(), from), (1, NOON + SECOND, NOON + SECOND));
    assert_eq!((back.mark(), back.greatest_mark()), (NOON + SECOND + MARGIN, NOON + HOUR + AHEAD + MARGIN));
    assert_eq!(back.window().skip, NOON + HOUR);
    assert_eq!(back.extended(NOON + HOUR - 500, NOON + HOUR), back.extended(NOON + HOUR - 500, NOON + HOUR - 100));
    assert_eq!(back.extended(NOON + HOUR - 500, NOON + HOUR + 1), Err(NOON + HOUR + AHEAD));
    assert!(back.covered(NOON, NOON + HOUR).is_ok());
    assert_eq!(back.covered(NOON, NOON + HOUR + 1), Err(NOON + HOUR + AHEAD));
    let past = back.extended(NOON + HOUR + AHEAD, NOON + HOUR + AHEAD + 1_000).unwrap();
    assert_eq!((past.era(), past.floor(), past.window().skip), (2, NOON + HOUR + AHEAD, i64::MAX));
}

/// A tick of a millisecond, and windows whose ends are near its own.
#[test]
fn a_tick_is_open_or_closed_as_a_whole() {
    let layout = built_in("twitter").unwrap();
    let share = Share::new(layout, Node::new(0, 1).unwrap(), Slot::new(0, 122).unwrap()).unwrap();
    for from in [i64::MIN, NOON - 1, NOON + 998, NOON + 999, NOON + 1_000, NOON + 1_001] {
        for until in [NOON - 1, NOON, NOON + 1, NOON + 1_000, i64::MAX] {
            for skip in [NOON, NOON + 998, NOON + 999, NOON + 1_000, NOON + 1_001, i64::MAX] {
                let mut generator = Generator::starting_above(layout, &share, NOON - 5_000, 0).unwrap();
                generator.allow(Window { from, until, skip });
                let answer = generator.next(NOON, || 0);
                if from <= NOON + 999 && NOON < until && NOON + 1_000 <= skip {
                    assert!(matches!(answer, Answer::Issue(_)), "{from} {until} {skip}: {answer:?}");
                } else {
                    assert_eq!(answer, Answer::Outside { tick_end: NOON + 1_000 }, "{from} {until} {skip}");
                }
            }
        }
    }
}

const fn progress(start: i64) -> Progress {
    Progress { start, position: 5, remaining: 7, stepped_back_from: i64::MIN, drifts: 0 }
}

#[test]
fn the_time_that_a_generator_stepped_back_from_is_not_free() {
    let stepped_back_from = |instant| Progress { stepped_back_from: instant, ..progress(NOON) };
    let instants = [i64::MIN, NOON, NOON + 7, i64::MAX].map(|instant| stepped_back_from(instant).free_from());
    assert_eq!(instants, [NOON + 1, NOON + 1, NOON + 8, i64::MAX]);
}

#[test]
fn a_slot_stores_eight_generators_and_gives_up_the_time_of_others() {
    let ledger = Ledger::new(NOON);
    let mut slot = SlotProgress::default();
    let store = |slot: &mut SlotProgress, key, era, start| {
        slot.store(&FinalProgress { key, era, progress: progress(start) });
    };
    let begins = |slot: &SlotProgress, key| {
        let Start { free_from, resumed } = slot.start(&ledger, key, i64::MIN);
        (free_from, resumed.map(|progress| progress.start))
    };
    assert_eq!(begins(&slot, 1), (NOON + 1, None));
    for key in 1..=8 {
        store(&mut slot, key, 0, NOON + 10 * key as i64);
    }
    for key in 1..=8 {
        assert_eq!(begins(&slot, key), (NOON + 1, Some(NOON + 10 * key as i64)));
    }
    let above = [NOON + 20, NOON + 21].map(|floor| slot.start(&ledger, 2, floor));
    let resumed = Some(progress(NOON + 20));
    assert_eq!(above, [Start { free_from: NOON + 20, resumed }, Start { free_from: NOON + 21, resumed: None }]);

    store(&mut slot, 8, 0, NOON + 90);
    assert_eq!([1, 8].map(|key| begins(&slot, key).1), [Some(NOON + 10), Some(NOON + 90)]);
    store(&mut slot, 9, 0, NOON + 100);
    assert_eq!([1, 9].map(|key| begins(&slot, key)), [(NOON + 11, None), (NOON + 1, Some(NOON + 100))]);
    // What is older than all that is stored, or as old, is not stored.
    store(&mut slot, 10, 0, NOON + 15);
    assert_eq!([2, 10].map(|key| begins(&slot, key)), [(NOON + 1, Some(NOON + 20)), (NOON + 16, None)]);
    store(&mut slot, 11, 0, NOON + 20);
    assert_eq!([2, 11].map(|key| begins(&slot, key)), [(NOON + 1, Some(NOON + 20)), (NOON + 21, None)]);
    slot.abandon(0, NOON + 500);
    assert_eq!(begins(&slot, 9), (NOON + 500, None));

    // Another era.
    store(&mut slot, 1, 1, NOON + 30);
    assert_eq!(begins(&slot, 1), (NOON + 1, None));
    let raised = ledger.raised_to(NOON + 2);
    store(&mut slot, 1, 0, NOON + 40);
    slot.abandon(0, NOON + 600);
    assert_eq!(slot.start(&raised, 1, i64::MIN).resumed, Some(progress(NOON + 30)));
}

#[test]
fn a_timeline_extends_up_to_what_is_skipped() {
    let stretch = |from, until| Stretch { from, until };
    let timeline = Timeline::of(&[stretch(20, 30), stretch(40, 50)], 0).unwrap();
    let extended = |now, tick_end| {
        let mut new = timeline;
        new.extend(now, tick_end).map(|()| new.stretches().to_vec())
    };
    assert_eq!(extended(19, 20), Err(20));
    assert_eq!(extended(20, 40), Ok(vec![stretch(20, 40), stretch(40, 50)]));
    assert_eq!([extended(20, 41), extended(49, 60)], [Err(50), Err(50)]);
    assert_eq!(extended(50, 60), Ok(vec![stretch(20, 30), stretch(40, 50 + AHEAD)]));

    let used_until = |instant| {
        let mut new = timeline;
        new.use_until(instant);
        new.stretches().to_vec()
    };
    assert_eq!(used_until(10), [stretch(i64::MIN, 30), stretch(40, 50)]);
    assert_eq!(used_until(39), [stretch(i64::MIN, 39), stretch(40, 50)]);
    assert_eq!([40, 60].map(used_until), [[stretch(i64::MIN, 50)], [stretch(i64::MIN, 60)]]);

    let mut known = timeline;
    known.forget_skipped();
    assert_eq!(known.stretches(), [stretch(20, 30)]);
}
