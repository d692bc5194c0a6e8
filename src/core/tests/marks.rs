//! Marks: a server must never take used time for free.

use flake_core::ledger::bound::Bound;
use flake_core::ledger::marks::{Author, MAX_MARKS, Mark, Marks};
use flake_core::ledger::used::{Free, Used};
use proptest::prelude::*;

const fn by(part: u32, count: u32, incarnation: u32, start: u32) -> Author {
    Author { part: (part, count), incarnation, start }
}

fn marks(all: impl IntoIterator<Item = (Author, i64)>) -> Marks {
    let mut marks = Marks::default();
    for (by, until) in all {
        marks.set(Mark { by, used: Used::before(until) });
    }
    marks
}

fn used_for(marks: &Marks, me: Author) -> Used {
    marks.used_for(me, None)
}

/// The mark counts without a margin, because an old primary has another part.
#[test]
fn a_mark_concerns_its_part_and_parts_of_other_divisions() {
    let me = by(1, 16, 5, 8);
    for (writer, expected) in [
        (by(1, 16, 5, 8), i64::MIN),
        (by(1, 16, 5, 7), 1000),
        (by(1, 16, 5, 0), 1000),
        (by(1, 16, 6, 8), 1000),
        (by(1, 16, 6, 9), 1000),
        // Other turns of the same node, and another node.
        (by(2, 16, 6, 8), i64::MIN),
        (by(3, 16, 5, 8), i64::MIN),
        (by(9, 16, 6, 8), i64::MIN),
        // Under another number of nodes, any part may have had any worker.
        (by(1, 32, 5, 8), 1000),
        (by(30, 32, 6, 9), 1000),
    ] {
        assert_eq!(used_for(&marks([(writer, 1000)]), me).until(), expected, "{writer:?}");
    }
    assert_eq!(used_for(&Marks::of_all(Used::before(1000)), me), Used::before(1000));
    // Start 0 stands for several starts.
    assert_eq!(marks([(by(1, 16, 5, 0), 1000)]).used_for(me, Some(&(0, Used::before(1000)))), Used::before(1000));
}

#[test]
fn all_marks_that_concern_a_part_count_together() {
    let mut all = marks([(by(1, 16, 6, 3), 1000), (by(2, 16, 6, 3), 9000), (by(7, 8, 2, 2), 2000)]);
    let used = Used::except(500, [Free { from: 10, to: 400, accepted: true }]);
    all.set(Mark { by: by(1, 16, 6, 3), used });
    assert_eq!(used_for(&all, by(1, 16, 5, 8)).until(), 2000);
    all.unite(&Marks::of_all(Used::before(3000)), (0, 1));
    assert_eq!(used_for(&all, by(1, 16, 5, 8)), Used::before(3000));
}

#[test]
fn an_exit_note_gives_back_what_the_file_knew() {
    let (me, known) = (by(0, 16, 5, 8), Used::except(1000, [Free { from: 10, to: 500, accepted: true }]));
    let used_for = |by, used| {
        let mut marks = Marks::default();
        marks.set(Mark { by, used });
        marks.used_for(me, Some(&(7, known)))
    };
    let of = |start| by(0, 16, 5, start);
    assert_eq!(used_for(of(7), known), Used::NONE);
    assert_eq!(used_for(of(7), known.without(900, 1000)), Used::NONE);
    assert_eq!(used_for(of(7), Used::before(1000)), Used::before(1000), "more than the file knew");
    assert_eq!(used_for(of(7), known.with(1000, 1001)).until(), 1001);
    assert_eq!(used_for(of(6), known), known);
    // A copy of the server that has drawn the same number for its start, or the same start under other numbers.
    assert_eq!(used_for(by(0, 16, 6, 7), known), known);
    assert_eq!(used_for(by(0, 32, 5, 7), known), known);
}

#[test]
fn the_union_of_two_copies_of_a_mark_forgets_nothing() {
    let (one, same, other) = (by(1, 16, 5, 8), by(1, 16, 5, 9), by(1, 16, 6, 9));
    for (first, second, expected) in [
        ((one, 1000), (one, 2000), (one, 2000)),
        ((one, 3000), (one, 2000), (one, 3000)),
        ((one, 1000), (same, 2000), (by(1, 16, 5, 0), 2000)),
        ((one, 2000), (same, 1000), (by(1, 16, 5, 0), 2000)),
        ((one, 1000), (other, 2000), (by(1, 16, 6, 0), 2000)),
        ((one, 2000), (other, 1000), (by(1, 16, 5, 0), 2000)),
    ] {
        let mut united = marks([first]);
        united.unite(&marks([second]), (0, 16));
        let mark = united.of((1, 16)).unwrap();
        assert_eq!((mark.by, mark.used.until()), expected, "{first:?} {second:?}");
        // A part's own mark is set by its server alone.
        let mut own = marks([first]);
        own.unite(&marks([second]), (1, 16));
        assert_eq!(own.of((1, 16)).unwrap().used.until(), first.1);
    }
}

/// One copy reaches further and has a gap where the other one has used time.
#[test]
fn copies_of_a_mark_are_not_compared() {
    for writer in [by(1, 16, 5, 8), by(1, 16, 5, 9), by(1, 16, 6, 8)] {
        let mut united = marks([(by(1, 16, 5, 8), 1000)]);
        let mut further = Marks::default();
        let used = Used::except(2000, [Free { from: 10, to: 500, accepted: true }]);
        further.set(Mark { by: writer, used });
        united.unite(&further, (0, 16));
        assert_eq!(united.of((1, 16)).unwrap().used, Used::before(2000));
    }
}

#[test]
fn a_folded_mark_counts_for_every_part() {
    let mut others = Marks::of_all(Used::before(2000));
    others.bound = Bound { recalls: 0, instant: 7, incarnation: 2 };
    others.above = 11;
    let mut united = marks([(by(0, 16, 5, 8), 1000)]);
    united.unite(&others, (0, 16));
    assert_eq!((united.until(), united.bound, united.above), (2000, others.bound, 11));
    for me in [by(0, 16, 5, 8), by(1, 16, 5, 8), by(4, 16, 6, 3), by(3, 8, 6, 3)] {
        assert_eq!(used_for(&united, me).until(), 2000, "{me:?}");
    }
}

#[test]
fn horizons_count_by_recalls_then_instants() {
    let bound = |recalls, instant, incarnation| Bound { recalls, instant, incarnation };
    for (one, other, expected) in [
        (bound(0, 5, 1), bound(0, 7, 2), bound(0, 7, 2)),
        (bound(0, 7, 1), bound(0, 5, 2), bound(0, 7, 1)),
        (bound(1, 5, 1), bound(0, 7, 2), bound(1, 5, 1)),
        (Bound::NONE, bound(0, 7, 2), bound(0, 7, 2)),
    ] {
        assert_eq!([one.united(other), other.united(one)], [expected; 2]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    /// However many parts there are, and in whatever order they come, a mark's used time includes everything that was used.
    #[test]
    fn marks_without_room_are_folded_and_count(
        raised in prop::collection::vec((0..400u32, 0..100_000i64, any::<bool>()), 1..600),
        is_united in any::<bool>(),
        is_renumbered in any::<bool>(),
    ) {
        // Marks under another number of parts concern every part, and would hide a mark that was forgotten.
        let count = |other_count| if other_count && is_renumbered { 500 } else { 600 };
        let mut known = Marks::default();
        for &(id, until, other_count) in &raised {
            let writer = by(id, count(other_count), 7, 3);
            let before = known.of(writer.part).map_or(i64::MIN, |mark| mark.used.until());
            let mark = (writer, until.max(before));
            if is_united {
                known.unite(&marks([mark]), (u32::MAX, 1));
            } else {
                known.set(Mark { by: mark.0, used: Used::before(mark.1) });
                prop_assert!(known.of(writer.part).is_some(), "its own is always listed");
            }
            prop_assert!(known.listed().len() <= MAX_MARKS);
        }
        for (id, until, other_count) in raised {
            let me = by(id, count(other_count), 7, 4);
            prop_assert!(used_for(&known, me).includes(i64::MIN, until));
            prop_assert!(used_for(&known, by(id, 700, 8, 4)).includes(i64::MIN, until));
            prop_assert!(known.until() >= until);
        }
    }
}
