//! The progress that the owner of a slot leaves to the next owner, and the windows of ticks.

use flake_core::{
    Answer, FinalProgress, Generator, Kept, Lanes, Node, OwnWords, Progress, SlotProgress, Start, Window, built_in,
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

fn store(slot: &mut SlotProgress, kept: Kept, era: u64, start: i64) {
    slot.store(&FinalProgress { kept, era, progress: progress(start) });
}

/// Where generators start in era 0, whose floor is noon.
fn begins(slot: &SlotProgress) -> [(i64, Option<i64>); 3] {
    [Kept::Nothing, Kept::Progress, Kept::Instant].map(|kept| {
        let Start { free_from, resumed } = slot.start(0, NOON, kept);
        (free_from, resumed.map(|progress| progress.start))
    })
}

#[test]
fn a_slot_keeps_one_progress_and_an_instant() {
    let mut slot = SlotProgress::default();
    assert_eq!(begins(&slot), [(NOON, None); 3]);
    store(&mut slot, Kept::Nothing, 0, NOON + 500);
    assert_eq!(begins(&slot), [(NOON, None); 3], "the words keep it");
    store(&mut slot, Kept::Progress, 0, NOON + 10);
    assert_eq!(begins(&slot), [(NOON, None), (NOON, Some(NOON + 10)), (NOON, None)]);
    store(&mut slot, Kept::Progress, 0, NOON + 9);
    assert_eq!(begins(&slot)[1], (NOON, Some(NOON + 9)), "the generator went back");
    // The partitions of callers have one instant, the latest.
    for (start, free_from) in [(NOON + 20, NOON + 21), (NOON + 30, NOON + 31), (NOON + 5, NOON + 31)] {
        store(&mut slot, Kept::Instant, 0, start);
        assert_eq!(begins(&slot)[1..], [(NOON, Some(NOON + 9)), (free_from, None)]);
    }
    let stepped_back = Progress { start: NOON, stepped_back_from: NOON + 70, drifts: 1 };
    slot.store(&FinalProgress { kept: Kept::Instant, era: 0, progress: stepped_back });
    assert_eq!(begins(&slot)[2], (NOON + 71, None));
}

#[test]
fn progress_below_the_floor_is_not_resumed() {
    let mut slot = SlotProgress::default();
    let stepped_back = Progress { start: NOON + 5, stepped_back_from: NOON + 70, drifts: 1 };
    slot.store(&FinalProgress { kept: Kept::Progress, era: 0, progress: stepped_back });
    let start = |floor| slot.start(0, floor, Kept::Progress);
    assert_eq!(start(NOON + 5), Start { free_from: NOON + 5, resumed: Some(stepped_back) });
    assert_eq!(start(NOON + 6), Start { free_from: NOON + 71, resumed: None });
    assert_eq!(start(NOON + 80), Start { free_from: NOON + 80, resumed: None });
}

#[test]
fn a_session_that_could_not_store_its_progress_gives_up_time() {
    let mut slot = SlotProgress::default();
    store(&mut slot, Kept::Progress, 0, NOON + 10);
    store(&mut slot, Kept::Instant, 0, NOON + 700);
    slot.abandon(0, NOON + 500);
    assert_eq!(begins(&slot)[1..], [(NOON + 701, None); 2], "the instant is not lowered");
    slot.abandon(0, NOON + 900);
    assert_eq!(begins(&slot)[1..], [(NOON + 900, None); 2]);
    store(&mut slot, Kept::Progress, 0, NOON + 910);
    assert_eq!(begins(&slot)[1..], [(NOON, Some(NOON + 910)), (NOON + 900, None)]);
}

#[test]
fn progress_counts_in_its_era_only() {
    let mut slot = SlotProgress::default();
    store(&mut slot, Kept::Progress, 0, NOON + 10);
    store(&mut slot, Kept::Instant, 0, NOON + 20);
    assert_eq!(slot.start(1, NOON + 2, Kept::Progress), Start { free_from: NOON + 2, resumed: None });
    // A new era begins.
    store(&mut slot, Kept::Progress, 1, NOON + 30);
    assert_eq!(begins(&slot), [(NOON, None); 3]);
    assert_eq!(slot.start(1, NOON + 2, Kept::Instant), Start { free_from: NOON + 2, resumed: None });
    // A session of an era that is over changes nothing.
    store(&mut slot, Kept::Progress, 0, NOON + 40);
    store(&mut slot, Kept::Instant, 0, NOON + 40);
    slot.abandon(0, NOON + 600);
    assert_eq!(slot.start(1, NOON + 2, Kept::Progress).resumed, Some(progress(NOON + 30)));
    assert_eq!(slot.start(1, NOON + 2, Kept::Instant), Start { free_from: NOON + 2, resumed: None });
    slot.abandon(2, NOON + 600);
    assert_eq!(slot.start(2, NOON + 2, Kept::Progress), Start { free_from: NOON + 600, resumed: None });
}

/// Ticks of a millisecond, and windows whose ends are close to the tick's.
#[test]
fn a_tick_is_open_or_closed_as_a_whole() {
    let layout = built_in("twitter").unwrap();
    let lanes = Lanes::new(layout, Node::new(0, 1).unwrap()).unwrap();
    for from in [i64::MIN, NOON - 1, NOON + 998, NOON + 999, NOON + 1_000, NOON + 1_001] {
        for until in [NOON - 1, NOON, NOON + 1, NOON + 1_000, i64::MAX] {
            for skip in [NOON, NOON + 998, NOON + 999, NOON + 1_000, NOON + 1_001, i64::MAX] {
                let start = Start { free_from: NOON - 5_000 + 1, resumed: None };
                let mut generator = Generator::start(layout, &lanes, 0, start, i64::MIN);
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
