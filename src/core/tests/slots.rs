//! The progress that the owner of a slot leaves to the next owner, and the windows of ticks.

use flake_core::{
    Answer, FinalProgress, Generator, Lanes, Node, OwnWords, Part, Progress, SlotProgress, Start, Window, built_in,
};

/// The beginning of a millisecond.
const NOON: i64 = 1_780_000_000_000_000;

const fn progress(start: i64) -> Progress {
    Progress { start, stepped_back_from: i64::MIN, drifts: 0 }
}

#[test]
fn the_time_that_a_generator_stepped_back_from_is_not_free() {
    let stepped_back_from = |instant| Progress { stepped_back_from: instant, ..progress(NOON) };
    let instants = [i64::MIN, NOON, NOON + 7, i64::MAX].map(|instant| stepped_back_from(instant).free_from());
    assert_eq!(instants, [NOON + 1, NOON + 1, NOON + 8, i64::MAX]);
}

fn store(slot: &mut SlotProgress, era: u64, start: i64) {
    slot.store(&FinalProgress { goes_back: true, era, progress: progress(start) });
}

/// Where a generator starts in an era whose floor is noon.
fn begins(slot: &SlotProgress, era: u64) -> (i64, Option<i64>) {
    let Start { free_from, resumed } = slot.start(era, NOON);
    (free_from, resumed.map(|progress| progress.start))
}

#[test]
fn a_slot_keeps_the_progress_of_a_generator_that_can_go_back() {
    let mut slot = SlotProgress::default();
    assert_eq!(begins(&slot, 0), (NOON, None));
    slot.store(&FinalProgress { goes_back: false, era: 0, progress: progress(NOON + 500) });
    assert_eq!(begins(&slot, 0), (NOON, None), "the words keep it");
    store(&mut slot, 0, NOON + 10);
    assert_eq!(begins(&slot, 0), (NOON, Some(NOON + 10)));
    store(&mut slot, 0, NOON + 9);
    assert_eq!(begins(&slot, 0), (NOON, Some(NOON + 9)), "the generator went back");
    slot.store(&FinalProgress { goes_back: false, era: 0, progress: progress(NOON + 500) });
    assert_eq!(begins(&slot, 0), (NOON, Some(NOON + 9)));
    // It does not begin an era either.
    slot.store(&FinalProgress { goes_back: false, era: 1, progress: progress(NOON + 500) });
    assert_eq!([begins(&slot, 0), begins(&slot, 1)], [(NOON, Some(NOON + 9)), (NOON, None)]);
}

#[test]
fn progress_below_the_floor_is_not_resumed() {
    let mut slot = SlotProgress::default();
    let stepped_back = Progress { start: NOON + 5, stepped_back_from: NOON + 70, drifts: 1 };
    slot.store(&FinalProgress { goes_back: true, era: 0, progress: stepped_back });
    let start = |floor| slot.start(0, floor);
    assert_eq!(start(NOON + 5), Start { free_from: NOON + 5, resumed: Some(stepped_back) });
    assert_eq!(start(NOON + 6), Start { free_from: NOON + 71, resumed: None });
    assert_eq!(start(NOON + 80), Start { free_from: NOON + 80, resumed: None });
}

#[test]
fn a_session_that_could_not_store_its_progress_gives_up_time() {
    let mut slot = SlotProgress::default();
    store(&mut slot, 0, NOON + 10);
    slot.abandon(0, NOON + 900);
    assert_eq!(begins(&slot, 0), (NOON + 900, None));
    slot.abandon(0, NOON + 500);
    assert_eq!(begins(&slot, 0), (NOON + 900, None), "the instant is not lowered");
    assert_eq!(slot.start(0, NOON + 901), Start { free_from: NOON + 901, resumed: None });
    store(&mut slot, 0, NOON + 910);
    assert_eq!(begins(&slot, 0), (NOON, Some(NOON + 910)));
}

#[test]
fn progress_counts_in_its_era_only() {
    let mut slot = SlotProgress::default();
    store(&mut slot, 0, NOON + 10);
    assert_eq!(slot.start(1, NOON + 2), Start { free_from: NOON + 2, resumed: None });
    // A new era begins.
    store(&mut slot, 1, NOON + 30);
    assert_eq!(begins(&slot, 0), (NOON, None));
    // A session of an era that is over changes nothing.
    store(&mut slot, 0, NOON + 40);
    slot.abandon(0, NOON + 600);
    assert_eq!(slot.start(1, NOON + 2).resumed, Some(progress(NOON + 30)));
    slot.abandon(1, NOON + 900);
    slot.abandon(2, NOON + 600);
    assert_eq!(slot.start(2, NOON + 2), Start { free_from: NOON + 600, resumed: None });
}

/// Ticks of a millisecond, and windows whose ends are close to the tick's.
#[test]
fn a_tick_is_open_or_closed_as_a_whole() {
    let layout = built_in("twitter").unwrap();
    let lanes = Lanes::new(layout, Part::whole(Node::new(0, 1).unwrap())).unwrap();
    for from in [i64::MIN, NOON - 1, NOON + 998, NOON + 999, NOON + 1_000, NOON + 1_001] {
        for until in [NOON - 1, NOON, NOON + 1, NOON + 1_000, i64::MAX] {
            for skip in [NOON, NOON + 998, NOON + 999, NOON + 1_000, NOON + 1_001, i64::MAX] {
                let start = Start { free_from: NOON - 5_000 + 1, resumed: None };
                let mut generator = Generator::start(layout, &lanes, 0, start);
                generator.allow(Window { from, until, skip });
                let answer = generator.next(NOON, &OwnWords::new(&lanes, layout.rule), || 0);
                if from <= NOON + 999 && NOON < until && NOON + 1_000 <= skip {
                    assert!(matches!(answer, Answer::Issue(_)), "{from} {until} {skip}: {answer:?}");
                } else {
                    assert_eq!(answer, Answer::Outside { tick_end: NOON + 1_000 }, "{from} {until} {skip}");
                }
            }
        }
    }
}
