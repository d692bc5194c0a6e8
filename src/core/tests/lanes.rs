//! Shares: they never overlap, whatever the servers' numbers of slots, and a configuration that leaves a slot without IDs is
//! refused.

use std::collections::HashMap;

use flake_core::{
    Answer, BUILTIN, Error, Field, Generator, IdSource, Layout, Node, Numbers, Reversal, Role, SequenceRule, Share,
    Slot, SnoSource, Start, built_in,
};
use proptest::prelude::*;

fn share(layout: &Layout, node: (u32, u32), slot: (u32, u32)) -> Result<Share, Error> {
    Share::new(layout, Node::new(node.0, node.1).unwrap(), Slot::new(slot.0, slot.1).unwrap())
}

#[test]
fn one_server_gives_a_twitter_session_a_part_of_each_step() {
    let share = share(built_in("twitter").unwrap(), (0, 1), (3, 122)).unwrap();
    assert_eq!(share.workers, Numbers { first: 0, count: 1024 });
    assert_eq!(share.sequences, Numbers { first: 0, count: 4096 });
    assert_eq!((share.steps, share.ids_per_step, share.size()), (63, 545, 34_335));
}

#[test]
fn with_1024_nodes_the_sessions_of_a_server_divide_one_worker() {
    let share = share(built_in("twitter").unwrap(), (67, 1024), (121, 122)).unwrap();
    assert_eq!(share.workers, Numbers { first: 67, count: 1 });
    assert_eq!((share.steps, share.ids_per_step), (33, 1));
}

#[test]
fn layouts_that_are_not_ordered_by_time_have_one_step() {
    for (name, in_order) in [("uniqueid", false), ("seata", false), ("sonyflake", true), ("base64id", true)] {
        let share = share(built_in(name).unwrap(), (0, 1), (3, 122)).unwrap();
        assert_eq!(share.steps > 1, in_order, "{name}: {share:?}");
    }
}

#[test]
fn nodes_are_the_coarsest_field() {
    let twitter = built_in("twitter").unwrap();
    let ids = first_ids(twitter, &share(twitter, (9, 32), (0, 4)).unwrap(), 0, 1000);
    assert!(ids.iter().all(|&id| twitter.numbers(id)[1].1 == 9), "node = datacenter");
    let uniqueid = built_in("uniqueid").unwrap();
    let ids = first_ids(uniqueid, &share(uniqueid, (9, 16), (0, 4)).unwrap(), 0, 64 * 16);
    assert!(ids.iter().all(|&id| id & 15 == 9), "node = cluster");
}

/// The first IDs of a tick, or all of them, from this many microseconds into the tick on.
fn first_ids(layout: &Layout, share: &Share, into_tick: i64, count: usize) -> Vec<u64> {
    let start = layout.epoch() + 1_000 * layout.tick_length();
    let mut generator = Generator::start(layout, share, Start { free_from: start + 1, resumed: None }, i64::MIN, 0);
    let mut next = || match generator.next(start + layout.tick_length() + into_tick, || 0) {
        Answer::Issue(id) => Some(id),
        _ => None,
    };
    std::iter::from_fn(&mut next).take(count).collect()
}

/// A layout with up to 9 bits for worker and sequence, in both orders, with the worker in one or two fields.
fn small_layout(worker_bits: u8, split: bool, sequence_bits: u8, worker_above: bool, tick: i64) -> Layout {
    let field = |name: &'static str, bits, role| Field { name: name.into(), bits, role };
    let sequence = field("sequence", sequence_bits, Role::Sequence);
    let mut fields = vec![field("timestamp", 40, Role::Timestamp { reversed: Reversal::Never }), sequence];
    let place = if worker_above { 1 } else { 2 };
    if split {
        fields.insert(place, field("coarse", 1, Role::Worker { rank: 0 }));
        fields.push(field("fine", worker_bits - 1, Role::Worker { rank: 1 }));
    } else {
        fields.insert(place, field("worker", worker_bits, Role::Worker { rank: 0 }));
    }
    Layout::new("small", 0, tick, fields, SequenceRule::Reset).unwrap()
}

/// Every ID of a tick has at most one maker, although each server has another number of slots.
#[test]
fn no_two_slots_of_any_nodes_share_an_id_of_small_layouts() {
    let mut tried = 0;
    for (worker_bits, sequence_bits) in [(2, 5), (3, 3), (4, 2), (5, 4), (2, 7), (2, 2)] {
        for (split, worker_above) in [(false, false), (false, true), (true, true)] {
            for (tick, nodes) in [16, 40, 1000].into_iter().flat_map(|tick| (1..6).map(move |nodes| (tick, nodes))) {
                let layout = small_layout(worker_bits, split, sequence_bits, worker_above, tick);
                let mut makers = HashMap::new();
                for node in 0..nodes {
                    let slots = 1 + (7 * node + 3 * nodes) % 11;
                    for slot in 0..slots {
                        let Ok(share) = share(&layout, (node, nodes), (slot, slots)) else { continue };
                        let ids = first_ids(&layout, &share, 0, usize::MAX);
                        assert_eq!(ids.len() as u64, share.size());
                        assert!(!layout.increases() || ids.is_sorted_by(|one, next| one < next), "{share:?}");
                        for id in ids {
                            let other = makers.insert(id, (node, slot));
                            assert_eq!(other, None, "{id} of node {node}, slot {slot} of {slots}: {layout:?}");
                            tried += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(tried > 30_000, "{tried}");
}

/// The same for partitions that callers of sno_next choose; the nodes divide their sequence.
#[test]
fn no_two_slots_of_any_nodes_share_a_sno() {
    const START: i64 = 1_700_000_000_000_000;
    for nodes in [1, 3, 16, 100] {
        let mut makers = HashMap::new();
        for (node, slots) in (0..nodes).map(|node| (node, [10, 250, 500][node as usize % 3])) {
            for slot in (0..slots).step_by(1 + slots as usize / 20) {
                let slot_of = Slot::new(slot, slots).unwrap();
                let share = SnoSource { partition: Some(7) }.share(Node::new(node, nodes).unwrap(), slot_of).unwrap();
                let mut generator = Generator::start(
                    SnoSource { partition: Some(7) },
                    &share,
                    Start { free_from: START + 1, resumed: None },
                    i64::MIN,
                    0,
                );
                while let Answer::Issue(sno) = generator.next(START + 4_000, 0) {
                    assert_eq!(
                        makers.insert(sno, (node, slot)),
                        None,
                        "{sno:?} of node {node}, slot {slot} of {slots}"
                    );
                }
            }
        }
        assert!(makers.len() > 60_000 / 25, "only {} snos have a maker", makers.len());
    }
}

/// Each node has automatic partitions of its own, which no caller can name.
#[test]
fn automatic_partitions_are_nobody_elses() {
    let mut free = 1 << 15;
    for node in (0..7).map(|node| Node::new(node, 7).unwrap()) {
        let of_slots =
            (0..3).map(|slot| SnoSource { partition: None }.share(node, Slot::new(slot, 3).unwrap()).unwrap());
        let of_node =
            of_slots.map(|share| share.workers).reduce(|one, other| if one == other { one } else { panic!() });
        let Numbers { first, count } = of_node.unwrap();
        assert!(first >= free && count > 0, "{node:?} has partitions from {first} on");
        free = first + count;
    }
    assert!(free <= 1 << 16, "the nodes have {free} partitions, more than there are");
    let of_caller =
        |partition| SnoSource { partition: Some(partition) }.share(Node::new(0, 1).unwrap(), Slot::new(0, 1).unwrap());
    assert_eq!(of_caller((1 << 15) - 1).unwrap().workers, Numbers { first: (1 << 15) - 1, count: 1 });
    assert!(matches!(of_caller(1 << 15), Err(Error::SnoPart { number: 32768, .. })));
}

/// Computes the node and slot of an ID from its worker and sequence: the inverse of the rule.
fn maker(layout: &Layout, id: u64, nodes: u64, slots: u64) -> Option<(u64, u64)> {
    let parts = layout.unpack(id).unwrap();
    let of_node = layout.workers() / nodes;
    let (node, worker) = (parts.worker / of_node, parts.worker % of_node);
    let worker_is_finer = layout.unpack(id ^ 1).unwrap().worker != parts.worker;
    let number =
        if worker_is_finer { parts.sequence * of_node + worker } else { worker * layout.sequences() + parts.sequence };
    let all = of_node * layout.sequences();
    let steps = if layout.last_ordered_tick().is_some() { (layout.tick_length() as u64).div_ceil(16) } else { 1 };
    let ids_per_step = (all / (slots * steps)).max(1);
    (number < all / (slots * ids_per_step) * slots * ids_per_step).then(|| (node, number / ids_per_step % slots))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The ID alone determines the node and the slot, so no other slot makes it.
    #[test]
    fn an_id_tells_its_node_and_slot(
        layout in prop::sample::select(vec!["twitter", "si", "sonyflake", "tsid", "leaf", "discord", "instagram", "seata"]),
        nodes in prop_oneof![1u32..40, Just(1024)],
        node: u32,
        slots in 1u32..1000,
        slot: u32,
        into_tick: i64,
        count in 1usize..600,
    ) {
        let layout = built_in(layout).unwrap();
        let (node, slot) = (node % nodes, slot % slots);
        let Ok(share) = share(layout, (node, nodes), (slot, slots)) else {
            prop_assert!(layout.workers() / u64::from(nodes) * layout.sequences() < u64::from(slots));
            return Ok(());
        };
        for id in first_ids(layout, &share, into_tick.rem_euclid(layout.tick_length()), count) {
            prop_assert_eq!(layout.node_of(id, Node::new(0, nodes).unwrap()), Ok(Some(node)));
            prop_assert_eq!(maker(layout, id, nodes.into(), slots.into()), Some((node.into(), slot.into())));
        }
    }

    /// IDs that different sessions make at least a step apart are in the order of time.
    #[test]
    fn sessions_are_in_order(
        layout in prop::sample::select(vec!["twitter", "sonyflake", "tsid", "leaf", "discord", "instagram", "base64id"]),
        slots in 2u32..1000,
        pair: (u32, u32),
        instants: (i64, i64),
    ) {
        let layout = built_in(layout).unwrap();
        let one = share(layout, (0, 1), (pair.0 % slots, slots)).unwrap();
        let two = share(layout, (0, 1), (pair.1 % slots, slots)).unwrap();
        let instants = (instants.0.rem_euclid(layout.tick_length()), instants.1.rem_euclid(layout.tick_length()));
        let step = layout.tick_length() / one.steps as i64 + 1;
        prop_assert!(step <= 17 || one.ids_per_step == 1);
        let ids = (first_ids(layout, &one, instants.0, 1)[0], first_ids(layout, &two, instants.1, 1)[0]);
        if (instants.0 - instants.1).abs() > step {
            prop_assert_eq!(ids.0 < ids.1, instants.0 < instants.1);
        }
    }
}

#[test]
fn most_of_a_tick_is_used() {
    for layout in BUILTIN.iter().filter(|layout| layout.generates) {
        for (nodes, slots) in [(1, 122), (1, 1000), (16, 122), (32, 500)] {
            let Ok(share) = share(layout, (0, nodes), (0, slots)) else { continue };
            let all = layout.workers() / u64::from(nodes) * layout.sequences();
            assert!(share.size() * u64::from(slots) <= all, "{slots} shares of {share:?} are more than {all} IDs");
            assert!(share.size() as f64 * f64::from(slots) > 0.5 * all as f64, "{} {share:?}", layout.name());
        }
    }
}

#[test]
fn configurations_that_leave_a_slot_without_ids_are_refused() {
    let twitter = built_in("twitter").unwrap();
    assert!(matches!(Node::new(4, 4), Err(Error::NodeOutOfRange { id: 4, count: 4 })));
    assert!(matches!(Slot::new(122, 122), Err(Error::SlotOutOfRange { .. })));
    let error = share(twitter, (0, 1025), (0, 1)).unwrap_err();
    assert!(matches!(error, Error::TooManyNodes { workers: 1024, nodes: 1025, .. }));
    // 4,097 slots cannot divide the 4,096 IDs of one worker, and even the first slot gets the error.
    let error = share(twitter, (0, 1024), (0, 4097)).unwrap_err();
    assert!(matches!(error, Error::EmptyShare { workers: 1, sequences: 4096, slots: 4097, .. }));
    assert!(share(twitter, (0, 1024), (4095, 4096)).is_ok());
    let node = Node::new(3, 100_000).unwrap();
    let slot = Slot::new(0, 10).unwrap();
    assert!(matches!(
        SnoSource { partition: None }.share(node, slot),
        Err(Error::TooManyNodes { workers: 32768, nodes: 100_000, .. })
    ));
    assert!(matches!(
        SnoSource { partition: Some(7) }.share(node, slot),
        Err(Error::EmptyShare { workers: 1, sequences: 0, slots: 10, .. })
    ));
}
