//! The progress that the owner of a slot leaves to the next owner, and the windows of ticks.

use flake_core::{
    Answer, FinalProgress, Generator, Node, Progress, Share, Slot, SlotProgress, Start, Window, built_in,
};

/// The beginning of a millisecond.
const NOON: i64 = 1_780_000_000_000_000;

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
    let mut slot = SlotProgress::default();
    let floor = NOON + 1;
    let store = |slot: &mut SlotProgress, key, era, start| {
        slot.store(&FinalProgress { key, era, progress: progress(start) });
    };
    let begins = |slot: &SlotProgress, key| {
        let Start { free_from, resumed } = slot.start(0, floor, key);
        (free_from, resumed.map(|progress| progress.start))
    };
    assert_eq!(begins(&slot, 1), (NOON + 1, None));
    for key in 1..=8 {
        store(&mut slot, key, 0, NOON + 10 * key as i64);
    }
    for key in 1..=8 {
        assert_eq!(begins(&slot, key), (NOON + 1, Some(NOON + 10 * key as i64)));
    }
    store(&mut slot, 8, 0, NOON + 90);
    assert_eq!([1, 8].map(|key| begins(&slot, key).1), [Some(NOON + 10), Some(NOON + 90)]);
    store(&mut slot, 9, 0, NOON + 100);
    assert_eq!([1, 9].map(|key| begins(&slot, key)), [(NOON + 11, None), (NOON + 1, Some(NOON + 100))]);
    // Progress is not stored if all stored progress is newer or as old.
    store(&mut slot, 10, 0, NOON + 15);
    assert_eq!([2, 10].map(|key| begins(&slot, key)), [(NOON + 1, Some(NOON + 20)), (NOON + 16, None)]);
    store(&mut slot, 11, 0, NOON + 20);
    assert_eq!([2, 11].map(|key| begins(&slot, key)), [(NOON + 1, Some(NOON + 20)), (NOON + 21, None)]);
    slot.abandon(0, NOON + 500);
    assert_eq!(begins(&slot, 9), (NOON + 500, None));
    (21..=29).for_each(|key| store(&mut slot, key, 0, NOON + 10));
    assert_eq!(begins(&slot, 30), (NOON + 500, None), "it is not lowered by what there is no room for");

    // A new era begins.
    store(&mut slot, 1, 1, NOON + 30);
    assert_eq!(begins(&slot, 1), (NOON + 1, None));
    assert_eq!(slot.start(1, NOON + 2, 29), Start { free_from: NOON + 2, resumed: None }, "an era that is over");
    store(&mut slot, 1, 0, NOON + 40);
    slot.abandon(0, NOON + 600);
    assert_eq!(slot.start(1, NOON + 2, 1).resumed, Some(progress(NOON + 30)));
}

#[test]
fn a_tick_that_reaches_into_used_time_is_not_resumed() {
    let start = Start { free_from: NOON, resumed: Some(progress(NOON + 3_000)) };
    for skip in [NOON + 4_000, i64::MAX] {
        assert_eq!(start.before(skip, 1_000), start);
    }
    let after = Start { free_from: NOON + 3_001, resumed: None };
    assert_eq!(start.before(NOON + 3_999, 1_000), after);
    // It does not lower the floor.
    let floor = NOON + 9_000;
    assert_eq!(Start { free_from: floor, ..start }.before(NOON, 1_000), Start { free_from: floor, resumed: None });
    assert_eq!(after.before(NOON, 1_000), after);
}

/// Ticks of a millisecond, and windows whose ends are close to the tick's.
#[test]
fn a_tick_is_open_or_closed_as_a_whole() {
    let layout = built_in("twitter").unwrap();
    let share = Share::new(layout, Node::new(0, 1).unwrap(), Slot::new(0, 122).unwrap()).unwrap();
    for from in [i64::MIN, NOON - 1, NOON + 998, NOON + 999, NOON + 1_000, NOON + 1_001] {
        for until in [NOON - 1, NOON, NOON + 1, NOON + 1_000, i64::MAX] {
            for skip in [NOON, NOON + 998, NOON + 999, NOON + 1_000, NOON + 1_001, i64::MAX] {
                let mut generator =
                    Generator::start(layout, &share, Start { free_from: NOON - 5_000 + 1, resumed: None }, i64::MIN, 0);
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
