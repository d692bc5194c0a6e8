//! Marks: a server must never take used time for free.

use flake_core::ledger::bound::Bound;
use flake_core::ledger::marks::{Author, MARGIN, MAX_MARKS, Mark, Marks, Times};
use flake_core::ledger::used::{Free, Used};
use proptest::prelude::*;

const fn by(id: u32, count: u32, incarnation: u32, start: u32) -> Author {
    Author { node: (id, count), incarnation, start }
}

fn marks(all: impl IntoIterator<Item = (Author, i64)>) -> Marks {
    let mut marks = Marks::default();
    for (by, until) in all {
        marks.set(Mark { by, times: Times::own(Used::before(until)) });
    }
    marks
}

fn concern(marks: &Marks, me: Author) -> (i64, bool) {
    let concern = marks.concern(me, &(0, Used::NONE));
    (concern.times.used(i64::MIN).until(), concern.is_of_another)
}

#[test]
fn a_mark_concerns_its_node_and_nodes_of_other_divisions() {
    let me = by(0, 2, 5, 8);
    for (writer, expected) in [
        (by(0, 2, 5, 8), (i64::MIN, false)),
        (by(0, 2, 5, 7), (1000, false)),
        (by(0, 2, 5, 0), (1000, false)),
        (by(0, 2, 6, 8), (1000 + MARGIN, true)),
        (by(1, 2, 6, 8), (i64::MIN, false)),
        // Under another number of nodes, any node may have had any worker.
        (by(0, 4, 5, 8), (1000, false)),
        (by(3, 4, 6, 8), (1000 + MARGIN, true)),
    ] {
        assert_eq!(concern(&marks([(writer, 1000)]), me), expected, "{writer:?}");
    }
    assert_eq!(concern(&Marks::of_all(Used::before(1000)), me), (1000 + MARGIN, true));
    // Start 0 stands for several starts.
    assert_eq!(concern(&marks([(by(0, 2, 5, 0), 1000)]), by(0, 2, 5, 0)), (1000, false));
}

#[test]
fn an_exit_note_gives_back_what_the_file_knew() {
    let (me, known) = (by(0, 2, 5, 8), Used::except(1000, [Free { from: 10, to: 500, accepted: true }]));
    let concern = |start, used| {
        let mut marks = Marks::default();
        marks.set(Mark { by: by(0, 2, 5, start), times: Times::own(used) });
        marks.concern(me, &(7, known)).times.own
    };
    assert_eq!(concern(7, known), Used::NONE);
    assert_eq!(concern(7, known.without(900, 1000)), Used::NONE);
    assert_eq!(concern(7, Used::before(1000)), Used::before(1000), "more than the file knew");
    assert_eq!(concern(7, known.with(1000, 1001, 1000)).until(), 1001);
    assert_eq!(concern(6, known), known);
}

/// A restart adds a margin to the time that its incarnation has inherited, and none to its own. Another incarnation inherits both.
#[test]
fn a_restart_keeps_inherited_time_apart() {
    let times = Times { own: Used::before(5 * MARGIN), inherited: Used::before(9 * MARGIN) };
    let mut marks = Marks::default();
    marks.set(Mark { by: by(0, 2, 5, 8), times });
    assert_eq!(marks.concern(by(0, 2, 5, 9), &(0, Used::NONE)).times, times);
    let another = marks.concern(by(0, 2, 6, 9), &(0, Used::NONE)).times;
    assert_eq!(another, Times { own: Used::NONE, inherited: Used::before(9 * MARGIN) });
    assert_eq!([times, another].map(|times| times.used(i64::MIN).until()), [10 * MARGIN; 2], "one margin");
    // The exit note only gives back the server's own time.
    assert_eq!(marks.concern(by(0, 2, 5, 9), &(8, times.own)).times, Times { own: Used::NONE, ..times });
}

#[test]
fn the_margin_is_after_each_window() {
    let used = Used::except(100 * MARGIN, [Free { from: 10 * MARGIN, to: 20 * MARGIN, accepted: false }]);
    let mut marks = Marks::default();
    marks.set(Mark { by: by(0, 2, 6, 8), times: Times::own(used) });
    let later = marks.concern(by(0, 2, 5, 8), &(0, Used::NONE)).times.used(i64::MIN);
    assert_eq!((later.until(), later.gaps()[0].from, later.gaps()[0].to), (101 * MARGIN, 11 * MARGIN, 20 * MARGIN));
}

#[test]
fn the_union_of_two_copies_of_a_mark_forgets_nothing() {
    let (one, same, other) = (by(1, 2, 5, 8), by(1, 2, 5, 9), by(1, 2, 6, 9));
    for (first, second, expected) in [
        ((one, 1000), (one, 2000), (one, 2000)),
        ((one, 3000), (one, 2000), (one, 3000)),
        ((one, 1000), (same, 2000), (by(1, 2, 5, 0), 2000)),
        // The incarnation that is not named any more may still be running.
        ((one, 1000), (other, 2000), (by(1, 2, 6, 0), 1000 + MARGIN)),
        ((one, 2000), (other, 1000), (by(1, 2, 5, 0), 1000 + MARGIN)),
        ((one, 1000), (other, 9 * MARGIN), (by(1, 2, 6, 0), 9 * MARGIN)),
    ] {
        let mut united = marks([first]);
        united.unite(&marks([second]), (0, 2));
        let mark = united.of((1, 2)).unwrap();
        assert_eq!((mark.by, mark.times.used(i64::MIN).until()), expected, "{first:?} {second:?}");
        // A node's own mark is set by the node alone.
        let mut own = marks([first]);
        own.unite(&marks([second]), (1, 2));
        assert_eq!(own.of((1, 2)).unwrap().times.own.until(), first.1);
    }
}

/// One copy reaches further and has a gap where the other one has used time.
#[test]
fn copies_of_a_mark_are_not_compared() {
    for start in [8, 9] {
        let mut united = marks([(by(1, 2, 5, 8), 1000)]);
        let mut further = Marks::default();
        let used = Used::except(2000, [Free { from: 10, to: 500, accepted: true }]);
        further.set(Mark { by: by(1, 2, 5, start), times: Times::own(used) });
        united.unite(&further, (0, 2));
        assert_eq!(united.of((1, 2)).unwrap().times.own, Used::before(2000));
    }
}

#[test]
fn a_folded_mark_counts_for_every_node() {
    let until = 20 * MARGIN;
    let mut others = Marks::of_all(Used::before(until));
    others.bound = Bound { recalls: 0, instant: 7, incarnation: 2 };
    others.above = 11;
    let mut united = marks([(by(0, 2, 5, 8), 10 * MARGIN)]);
    united.unite(&others, (0, 2));
    assert_eq!((united.until(), united.bound, united.above), (until, others.bound, 11));
    assert_eq!([concern(&united, by(0, 2, 5, 8)), concern(&united, by(1, 2, 6, 3))], [(until + MARGIN, true); 2]);
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
    /// However many nodes there are, and in whatever order they come, a mark's used time includes everything that was used.
    #[test]
    fn marks_without_room_are_folded_and_count(
        raised in prop::collection::vec((0..400u32, 0..100_000i64, any::<bool>()), 1..600),
        is_united in any::<bool>(),
        is_renumbered in any::<bool>(),
    ) {
        // Marks under another number of nodes concern every node, and would hide a mark that was forgotten.
        let count = |other_count| if other_count && is_renumbered { 500 } else { 600 };
        let mut known = Marks::default();
        for &(id, until, other_count) in &raised {
            let writer = by(id, count(other_count), 7, 3);
            let before = known.of(writer.node).map_or(i64::MIN, |mark| mark.times.own.until());
            let mark = (writer, until.max(before));
            if is_united {
                known.unite(&marks([mark]), (u32::MAX, 1));
            } else {
                known.set(Mark { by: mark.0, times: Times::own(Used::before(mark.1)) });
                prop_assert!(known.of(writer.node).is_some(), "its own is always listed");
            }
            prop_assert!(known.listed().len() <= MAX_MARKS);
        }
        for (id, until, other_count) in raised {
            let me = by(id, count(other_count), 7, 4);
            prop_assert!(concern(&known, me).0 >= until);
            prop_assert!(concern(&known, by(id, 700, 8, 4)).0 >= until);
            prop_assert!(known.until() >= until);
        }
    }
}
