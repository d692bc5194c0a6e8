//! The marks of a database: no node may think that it knows less than there is.

use std::collections::HashMap;

use flake_core::Node;
use flake_core::marks::Marks;
use proptest::prelude::*;

fn node(id: u32, count: u32) -> Node {
    Node::new(id, count).unwrap()
}

fn counting(marks: &Marks, node: Node) -> i64 {
    let known = marks.of(node);
    known.own.map_or(i64::MIN, |(instant, _)| instant).max(known.inherited)
}

#[test]
fn every_node_has_its_own_mark() {
    let mut marks = Marks::new(None);
    assert!(marks.is_valid());
    assert!(marks.raise(node(0, 2), 40, 7));
    assert!(!marks.raise(node(0, 2), 30, 8), "marks are never lowered");
    assert!(!marks.raise(node(0, 2), 40, 8), "nothing has changed");
    let other = marks.of(node(1, 2));
    assert_eq!((other.own, other.inherited, other.is_listed, other.of_others), (None, i64::MIN, false, 40));
    let own = marks.of(node(0, 2));
    assert_eq!((own.own, own.inherited, own.is_listed, own.of_others), (Some((40, 7)), i64::MIN, true, i64::MIN));
    // With another number of nodes, any of them may have had any worker.
    let other_count = marks.of(node(5, 32));
    assert_eq!((other_count.own, other_count.inherited, other_count.is_listed), (None, 40, true));
    assert_eq!(marks.own(node(5, 32)), None);
}

#[test]
fn what_a_sequence_says_counts_for_nodes_that_are_not_listed() {
    let mut marks = Marks::new(Some(50));
    assert_eq!((marks.of(node(7, 9)).inherited, marks.of(node(7, 9)).is_listed), (50, false));
    marks.raise(node(7, 9), 10, 7);
    assert_eq!(marks.own(node(7, 9)), Some(50), "it goes on counting");
    assert_eq!(marks.greatest(), 50);
}

#[test]
fn the_lowest_mark_makes_room_and_is_not_forgotten() {
    // The lowest comes first, in the middle and last.
    for order in [|id: u32| id, |id| (id + 300) % 600, |id| 599 - id] {
        let mut marks = Marks::new(None);
        let raised: Vec<_> = (0..600).map(|id| (node(id, 600), 1000 + i64::from(order(id)))).collect();
        for &(node, instant) in &raised {
            marks.raise(node, instant, 7);
        }
        assert!(raised.iter().all(|&(node, instant)| counting(&marks, node) >= instant));
    }
}

#[test]
fn what_binds_every_node_is_never_lowered() {
    let mut marks = Marks::new(None);
    assert_eq!((marks.binding(), marks.of(node(0, 2)).binding), (i64::MIN, None));
    assert!(marks.bind(40, 7));
    assert!(!marks.bind(40, 8) && !marks.bind(30, 8));
    assert_eq!((marks.binding(), marks.of(node(5, 32)).binding), (40, Some((40, 7))));
    assert!(marks.bind(41, 8));
    assert_eq!(marks.of(node(0, 2)).binding, Some((41, 8)));
}

proptest! {
    /// However many nodes there are and in whatever order they come, what is known of a node is at least its own mark.
    #[test]
    fn a_full_page_forgets_nobody(
        raised in prop::collection::vec((0..1500u32, 0..10_000i64, any::<bool>()), 1..3000),
        is_mixed in any::<bool>(),
    ) {
        let mut marks = Marks::new(None);
        let mut wanted = HashMap::new();
        for (id, instant, other_count) in raised {
            let node = node(id, if other_count && is_mixed { 1500 } else { 2000 });
            marks.raise(node, instant, 7);
            prop_assert!(marks.own(node).unwrap() >= instant);
            let wanted = wanted.entry((node.id(), node.count())).or_insert(instant);
            *wanted = instant.max(*wanted);
        }
        prop_assert!(marks.is_valid());
        for ((id, count), instant) in wanted {
            prop_assert!(counting(&marks, node(id, count)) >= instant);
            let other = node(id, 3000);
            prop_assert!(counting(&marks, other) >= instant);
            prop_assert!(marks.greatest() >= instant);
        }
    }
}
