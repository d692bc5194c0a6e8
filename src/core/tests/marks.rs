//! The marks of a database: no node may think that it knows less than there is.

use std::collections::HashMap;

use flake_core::Node;
use flake_core::marks::Marks;
use proptest::prelude::*;

fn node(id: u32, count: u32) -> Node {
    Node::new(id, count).unwrap()
}

#[test]
fn every_node_has_its_own_mark() {
    let mut marks = Marks::new(None);
    assert!(marks.is_valid());
    assert_eq!(marks.of(node(0, 2)), None);
    assert!(marks.raise(node(0, 2), 40));
    assert!(!marks.raise(node(0, 2), 30), "marks are never lowered");
    assert_eq!(marks.of(node(1, 2)), None);
    assert_eq!(marks.of(node(0, 2)).map(|known| (known.instant, known.is_listed)), Some((40, true)));
    // With another number of nodes, any of them may have had any worker.
    assert_eq!(marks.of(node(5, 32)).map(|known| known.instant), Some(40));
    assert_eq!(marks.own(node(5, 32)), None);
}

#[test]
fn what_a_sequence_says_counts_for_nodes_that_are_not_listed() {
    let mut marks = Marks::new(Some(50));
    assert_eq!(marks.of(node(7, 9)).map(|known| (known.instant, known.is_listed)), Some((50, false)));
    marks.raise(node(7, 9), 10);
    assert_eq!(marks.own(node(7, 9)), Some(50), "it goes on counting");
    assert_eq!(marks.greatest(), 50);
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
            marks.raise(node, instant);
            prop_assert!(marks.own(node).unwrap() >= instant);
            let wanted = wanted.entry((node.id(), node.count())).or_insert(instant);
            *wanted = instant.max(*wanted);
        }
        prop_assert!(marks.is_valid());
        for ((id, count), instant) in wanted {
            prop_assert!(marks.of(node(id, count)).unwrap().instant >= instant);
            let other = node(id, 3000);
            prop_assert!(marks.of(other).unwrap().instant >= instant);
            prop_assert!(marks.greatest() >= instant);
        }
    }
}
