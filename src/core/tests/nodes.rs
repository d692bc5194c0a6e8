//! The node of an ID is the node whose numbers contain it.

use flake_core::{BUILTIN, Error, IdSource, Lanes, Layout, Node, Numbers, Part, Parts, SnoParts, SnoSource, built_in};
use proptest::prelude::*;

mod made;

/// The numbers that a node has; None if there is not one for each.
type Own<'a> = &'a dyn Fn(Node) -> Option<Numbers>;

/// Checks, for these counts of nodes, that each number below `all` belongs to the node that has it, or to none if no node does.
/// Returns how many numbers were left over.
fn check(all: u64, counts: impl Iterator<Item = u32>, own: Own, node_of: &dyn Fn(u64, Node) -> Option<u32>) -> usize {
    let mut left_over = 0;
    for count in counts {
        let mut expected = vec![None; all as usize];
        for id in 0..count {
            let Some(Numbers { first, count }) = own(Node::new(id, count).unwrap()) else { break };
            for number in first..first + count {
                assert_eq!(expected[number as usize].replace(id), None, "{number} is of two nodes");
            }
        }
        // The result does not depend on which of the nodes asks.
        let asking = Node::new(count / 2, count).unwrap();
        for (number, &expected) in expected.iter().enumerate() {
            assert_eq!(node_of(number as u64, asking), expected, "{number} of {all} with {count} nodes");
            left_over += usize::from(expected.is_none());
        }
    }
    left_over
}

/// All counts from one to more than there are numbers; fewer counts if there are many numbers.
fn counts(all: u64) -> Vec<u32> {
    let all = all as u32;
    let mut counts: Vec<_> = match all.ilog2() {
        ..=10 => (1..all).collect(),
        11..=16 => (1..40).chain((6..all.ilog2()).flat_map(|bits| (1 << bits) - 1..=(1 << bits) + 1)).collect(),
        _ => vec![3],
    };
    counts.extend([all / 2 + 1, all.max(2) - 1, all, all + 1, 1 << 28]);
    counts
}

fn workers(layout: &Layout, node: Node) -> Option<Numbers> {
    match Lanes::new(layout, Part::whole(node)) {
        Ok(lanes) => {
            // A node has all sequence numbers of its workers.
            assert_eq!(lanes.sequences, Numbers { first: 0, count: layout.sequences() });
            assert_eq!(Ok(lanes.workers), node.workers(layout));
            Some(lanes.workers)
        }
        Err(Error::TooManyNodes { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// An ID of a worker, with random other parts.
fn id(layout: &Layout, worker: u64, anything: u64) -> u64 {
    let (tick, sequence) = (anything % (layout.last_tick() + 1), anything % layout.sequences());
    layout.pack(&Parts { tick, worker, sequence, random: anything }).unwrap()
}

fn check_layout(layout: &Layout) {
    let all = layout.workers();
    let node_of = |worker: u64, node| {
        let anything = (worker + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        layout.node_of(id(layout, worker, anything), node).unwrap()
    };
    let left_over = check(all, counts(all).into_iter(), &|node| workers(layout, node), &node_of);
    // For each count that is too large, all numbers are left over.
    assert!(left_over >= 2 * all as usize, "{}: {left_over}", layout.name());
}

/// A layout whose worker bits are two fields, the finer one above the other, and one bit for everything else.
fn layout_of_workers(coarse: u8, fine: u8) -> Layout {
    made::layout(1000, &format!("v{fine} t1 x1 w{coarse} s1"))
}

#[test]
fn each_worker_of_custom_layouts_belongs_to_its_node() {
    for (coarse, fine) in [(0, 0), (1, 0), (0, 2), (1, 1), (2, 3), (4, 4)] {
        check_layout(&layout_of_workers(coarse, fine));
    }
}

#[test]
fn each_sno_belongs_to_its_node() {
    const CALLERS: u64 = 1 << 15;
    let sno = |partition: u64, sequence: u64| {
        let anything = (partition ^ sequence).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (partition, sequence) = (partition as u16, sequence as u16);
        SnoParts { tick: anything >> 20, tick_tock: anything & 1 == 1, metabyte: anything as u8, partition, sequence }
            .pack()
    };
    // A server uses some of them.
    let automatic = |node: Node| {
        let count = CALLERS / u64::from(node.count());
        let all = Numbers { first: u64::from(node.id()) * count, count };
        let used = SnoSource { partition: None }.lanes(Part::whole(node)).ok()?.workers;
        assert!(used.first == CALLERS + all.first && used.count <= count);
        Some(all)
    };
    let node_of_partition = |number, node| sno(CALLERS + number, number % 7).node_of(node);
    let left_over = check(CALLERS, counts(CALLERS).into_iter(), &automatic, &node_of_partition);
    assert!(left_over > CALLERS as usize, "{left_over} numbers are left over");
    let callers = |node| Some(SnoSource { partition: Some(7) }.lanes(Part::whole(node)).ok()?.sequences);
    let node_of_sequence = |number, node| sno(7, number).node_of(node);
    let left_over = check(1 << 16, counts(1 << 16).into_iter(), &callers, &node_of_sequence);
    assert!(left_over > 1 << 16, "{left_over} numbers are left over");
}

#[test]
fn an_id_of_a_read_only_layout_belongs_to_no_node() {
    let read_only: Vec<_> = BUILTIN.iter().filter(|layout| !layout.generates).collect();
    assert!(read_only.len() >= 8, "only {} layouts are read-only", read_only.len());
    for (layout, count) in read_only.into_iter().flat_map(|layout| [(layout, 1), (layout, 2)]) {
        assert_eq!(layout.node_of(id(layout, 0, 1), Node::new(0, count).unwrap()), Ok(None), "{}", layout.name());
    }
}

#[test]
fn an_impossible_id_is_an_error() {
    let node = Node::new(0, 1).unwrap();
    assert!(matches!(built_in("twitter").unwrap().node_of(1 << 63, node), Err(Error::ImpossibleId { .. })));
    assert!(matches!(built_in("uniqueid").unwrap().node_of(1024, node), Err(Error::ImpossibleId { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any number of workers and nodes.
    #[test]
    fn a_worker_belongs_to_its_node(
        bits in (0u8..=30, 0u8..=31),
        count in prop_oneof![1u32..100, 1u32..=1 << 28],
        anything: u64,
        edge in prop::option::of((any::<u32>(), -1i64..=1)),
    ) {
        let layout = layout_of_workers(bits.0, bits.1);
        let of = |id| workers(&layout, Node::new(id, count).unwrap());
        // Any worker, or one close to where a node's workers begin.
        let worker = match edge {
            Some((id, beside)) => of(id % count).map_or(0, |own| own.first).saturating_add_signed(beside),
            None => anything,
        } % layout.workers();
        match layout.node_of(id(&layout, worker, anything), Node::new(0, count).unwrap()).unwrap() {
            Some(node) => {
                let own = of(node).unwrap();
                prop_assert!((own.first..own.first + own.count).contains(&worker), "{own:?} of {node} has no {worker}");
            }
            // The worker is above the workers of all nodes, or there are none.
            None => prop_assert!(of(count - 1).is_none_or(|last| worker >= last.first + last.count)),
        }
    }
}
