//! Used time: a set that only grows.

use flake_core::ledger::used::{Free, MAX_GAPS, Used};
use proptest::prelude::*;

/// There are few instants, so that the ends of sets often meet.
const END: i64 = 60;

fn any_gaps() -> impl Strategy<Value = Vec<Free>> {
    let gap = (0..END, 1..9i64, any::<bool>()).prop_map(|(from, length, accepted)| Free {
        from,
        to: from + length,
        accepted,
    });
    prop::collection::vec(gap, 0..6).prop_map(|mut gaps| {
        gaps.sort_by_key(|gap| gap.from);
        let mut apart: Vec<Free> = Vec::new();
        for gap in gaps {
            if apart.last().is_none_or(|last| last.to < gap.from) {
                apart.push(gap);
            }
        }
        apart
    })
}

prop_compose! {
    fn any_used()(gaps in any_gaps(), beyond in 1..9i64, is_none in prop::bool::weighted(0.1)) -> Used {
        let until = gaps.last().map_or(0, |gap| gap.to) + beyond;
        if is_none { Used::NONE } else { Used::except(until, gaps) }
    }
}

fn is_used(used: &Used, instant: i64) -> bool {
    used.free_at(instant).is_none()
}

fn instants() -> impl Iterator<Item = i64> {
    (-3..END + 40).chain([i64::MIN, i64::MAX - 1])
}

fn gap(from: i64, to: i64) -> Free {
    Free { from, to, accepted: false }
}

#[test]
fn a_clock_that_jumps_ahead_leaves_a_gap_that_nobody_has_accepted() {
    let used = Used::before(10).with(30, 40);
    assert_eq!(used.gaps(), [gap(10, 30)]);
    assert_eq!((used.until(), used.accepted_after(0), used.accepted_after(9)), (40, 40, 40));
    let accepted = used.accepting(20);
    assert_eq!((accepted.accepted_after(9), accepted.gaps()[0].accepted), (10, true));
    assert!(!used.accepting(30).gaps()[0].accepted, "it is over");
    // IDs are made in accepted time. The time that they have passed is not accepted any more.
    assert_eq!(accepted.with(15, 20).gaps().iter().map(|gap| gap.accepted).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn used_time_ahead_is_listed() {
    let used = Used::except(40, [gap(10, 20), gap(25, 30)]);
    assert_eq!(used.after(5), [(5, 10), (20, 25), (30, 40)]);
    assert_eq!(used.after(12), [(20, 25), (30, 40)]);
    assert_eq!(used.after(40), []);
}

#[test]
fn a_window_ends_where_used_time_begins() {
    let used = Used::except(40, [gap(10, 20)]).with(12, 15);
    let window = used.window(12, 15);
    assert_eq!((window.from, window.until, window.skip), (12, 15, 20));
    assert_eq!(used.window(40, 50).skip, i64::MAX);
    assert_eq!(used.window(12, 20).skip, 20, "the used time follows directly");
    assert_eq!(used.around(13), (12, 15));
    assert_eq!(used.around(25), (20, 40));
}

/// A gap that is shorter than the used time since is forgotten. Other gaps do not count as passed time.
#[test]
fn gaps_are_forgotten_after_as_much_used_time() {
    let used = Used::before(0).with(10, 20);
    assert_eq!(used.forgetting(19, 0).gaps(), [gap(0, 10)]);
    assert_eq!(used.forgetting(20, 0).gaps(), []);
    assert_eq!(used.forgetting(20, 1).gaps(), [gap(0, 10)], "the clock has jumped by more than the gap");
    let jumped = used.with(40, 43);
    assert_eq!(jumped.forgetting(40, 0).gaps(), [gap(20, 40)]);
    let jumped = Used::before(0).with(10, 13).with(40, 43);
    assert_eq!(jumped.forgetting(43, 0).gaps(), [gap(0, 10), gap(13, 40)], "the clock has jumped twice");
}

/// If there are too many gaps, the shortest goes. The one before all used time stays, and so does the one around the clock.
#[test]
fn the_gap_around_the_clock_is_kept() {
    for becomes_shorter in [false, true] {
        let mut used = Used::NONE;
        for at in 0..40 {
            let length = if becomes_shorter { 89 - at } else { 50 + at };
            let from = 100 * at + if at == 20 { 90 } else { length };
            used = used.with(from, 100 * (at + 1));
            assert!(used.gaps().iter().any(|gap| gap.to == from), "{at}: {used:?}");
            assert!(used.gaps().len() <= MAX_GAPS, "there are too many gaps: {used:?}");
            assert_eq!(used.gaps()[0].from, i64::MIN);
        }
        assert!(used.gaps().contains(&gap(2000, 2090)), "the longest: {:?}", used.gaps());
    }
}

proptest! {
    #[test]
    fn a_union_has_all_and_nothing_else(one in any_used(), other in any_used()) {
        let both = one.united(&other);
        for instant in instants() {
            prop_assert_eq!(is_used(&both, instant), is_used(&one, instant) || is_used(&other, instant));
            if let (Some(free), Some(a), Some(b)) = (both.free_at(instant), one.free_at(instant), other.free_at(instant)) {
                let says = |free: Free| (free.to < i64::MAX).then_some(free.accepted);
                let expected = match (says(a), says(b)) {
                    (Some(a), Some(b)) => a || b,
                    (Some(one), None) | (None, Some(one)) => one,
                    (None, None) => true,
                };
                prop_assert_eq!(free.accepted, expected);
            }
        }
        prop_assert!(both.contains(&one) && both.contains(&other));
        prop_assert_eq!(both, other.united(&one));
        prop_assert_eq!(one.united(&one), one);
    }

    #[test]
    fn used_time_stays_used(one in any_used(), from in 0..END, length in 0..9i64, now in 0..END, by in 0..5i64) {
        let to = from + length;
        let with = one.with(from, to);
        let (accepting, forgetting) = (one.accepting(now), one.forgetting(now, by));
        for instant in instants() {
            prop_assert_eq!(is_used(&with, instant), is_used(&one, instant) || (from..to).contains(&instant));
            prop_assert_eq!(is_used(&accepting, instant), is_used(&one, instant));
            prop_assert!(is_used(&forgetting, instant) || !is_used(&one, instant));
        }
        for gap in one.gaps() {
            let again = accepting.gaps().iter().find(|same| same.from == gap.from).unwrap();
            prop_assert_eq!(again.accepted, gap.accepted || gap.to > now);
        }
    }

    #[test]
    fn only_time_that_is_given_back_becomes_free(one in any_used(), from in 0..END, length in 0..9i64) {
        let to = from + length;
        let without = one.without(from, to);
        for instant in instants() {
            let given = one.includes(from, to) && (from..to).contains(&instant);
            prop_assert_eq!(is_used(&without, instant), is_used(&one, instant) && !given);
        }
    }

    #[test]
    fn each_query_of_a_set_agrees_with_its_instants(one in any_used(), other in any_used(), from in 0..END, length in 0..9i64) {
        let to = from + length;
        prop_assert_eq!(one.touches(from, to), (from..to).any(|at| is_used(&one, at)));
        prop_assert_eq!(one.includes(from, to), (from..to).all(|at| is_used(&one, at)));
        prop_assert_eq!(one.contains(&other), instants().all(|at| is_used(&one, at) || !is_used(&other, at)));
        let next = one.accepted_after(from);
        prop_assert!(next == i64::MAX || next > from && one.free_at(next).is_some_and(|free| free.accepted && free.from == next));
    }

    #[test]
    fn a_full_set_counts_more_as_used_but_not_less(starts in prop::collection::vec((0..5000i64, 1..30i64), 1..60)) {
        let mut used = Used::NONE;
        for &(from, length) in &starts {
            let before = used;
            used = used.with(from, from + length);
            prop_assert!(used.contains(&before) && used.includes(from, from + length));
            prop_assert!(used.gaps().len() <= MAX_GAPS, "there are too many gaps: {used:?}");
        }
    }
}
