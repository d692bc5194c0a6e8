//! Parts: what the server of a node may use in a turn belongs to no other node or turn.

use flake_core::{
    Error, Field, Lanes, Layout, Node, Numbers, PARTS, Part, Reversal, Role, SequenceRule, TURNS, built_in,
};

fn node(id: u32, count: u32) -> Node {
    Node::new(id, count).unwrap()
}

/// The parts of a node in all turns of both generations.
fn in_turns(node: Node) -> impl Iterator<Item = Part> {
    (0..PARTS).map(move |number| Part::in_turn(node, number % TURNS, number / TURNS))
}

/// A layout with this many bits for time, worker and sequence, in this order or with the sequence first.
fn layout(tick: i64, [time, workers, sequences]: [u8; 3], is_worker_above: bool) -> Layout {
    let field = |name: &'static str, bits, role| Field { name: name.into(), bits, role };
    let mut fields = vec![
        field("timestamp", time, Role::Timestamp { reversed: Reversal::Never }),
        field("worker", workers, Role::Worker { rank: 0 }),
        field("sequence", sequences, Role::Sequence),
    ];
    if !is_worker_above {
        fields.swap(1, 2);
    }
    fields.retain(|field| field.bits > 0);
    Layout::new("made", 0, tick, fields, SequenceRule::Reset).unwrap()
}

/// Layouts with few worker bits, in the order of time or not, with ticks of more than a second or not.
fn custom() -> Vec<Layout> {
    let mut all = Vec::new();
    for (workers, sequences) in (0..4).flat_map(|workers| (0..5).map(move |sequences| (workers, sequences))) {
        for (tick, is_worker_above) in [(1000, true), (1000, false), (1_000_000, true), (1_000_001, true)] {
            all.push(layout(tick, [40, workers, sequences], is_worker_above));
        }
        // Time is the lowest field.
        let mut fields = layout(1000, [40, workers, sequences], true).fields().to_vec();
        fields.rotate_left(1);
        all.push(Layout::new("made", 0, 1000, fields, SequenceRule::Reset).unwrap());
    }
    all
}

/// Checks that parts lie in what the node has, and that none overlaps those before it. They are in order, so each is behind
/// the last one, or has sequence numbers behind those that the last one has of the same workers.
fn follow_each_other(layout: &Layout, parts: impl Iterator<Item = Part>) {
    let end = |numbers: Numbers| numbers.first + numbers.count;
    let mut last: Option<(Numbers, Numbers)> = None;
    for part in parts {
        let (workers, sequences) = part.numbers(layout).unwrap();
        let of_node = part.node().workers(layout).unwrap();
        assert!(workers.count > 0 && sequences.count > 0);
        assert!(of_node.first <= workers.first && end(workers) <= end(of_node), "{part:?} of {layout:?}");
        assert!(end(sequences) <= layout.sequences(), "{part:?} of {layout:?}");
        let is_behind = last.is_none_or(|(before, used)| {
            end(before) <= workers.first || before == workers && end(used) <= sequences.first
        });
        assert!(is_behind, "{part:?} of {layout:?} has {workers:?} and {sequences:?}, the one before {last:?}");
        last = Some((workers, sequences));
    }
}

/// Returns how many parts there were.
fn check(layout: &Layout, nodes: u32) -> usize {
    let Ok(workers) = node(0, nodes).workers(layout) else {
        let error = Part::in_turn(node(0, nodes), 1, 0).numbers(layout).unwrap_err();
        assert!(matches!(error, Error::TooManyNodes { .. }), "{error:?}");
        return 0;
    };
    let whole = Part::whole(node(0, nodes)).numbers(layout);
    assert_eq!(whole, Ok((workers, Numbers { first: 0, count: layout.sequences() })));
    if workers.count * layout.sequences() >= PARTS.into() {
        follow_each_other(layout, (0..nodes).flat_map(|id| in_turns(node(id, nodes))));
        return (nodes * PARTS) as usize;
    }
    for part in (0..nodes).flat_map(|id| in_turns(node(id, nodes))) {
        let error = part.numbers(layout).unwrap_err();
        let of_error = |layout: &Layout| Error::TooFewIds {
            layout: layout.name().to_owned().into(),
            workers: workers.count,
            sequences: layout.sequences(),
            parts: PARTS,
        };
        assert_eq!(error, of_error(layout));
        assert_eq!(Lanes::new(layout, part), Err(error));
    }
    0
}

/// A node with as many IDs as there are parts has them, a node with fewer has none.
#[test]
fn parts_of_layouts_with_few_workers_do_not_overlap() {
    let (mut seen, mut without) = (0, 0);
    for layout in &custom() {
        for nodes in [1, 2, 3, 5, 8, 32] {
            let found = check(layout, nodes);
            seen += found;
            without += usize::from(found == 0);
        }
    }
    assert!(seen > 1000 && without > 100, "{seen} parts; {without} deployments without any");
}

#[test]
fn a_part_knows_its_turn_and_its_generation() {
    for (number, part) in (0..).zip(in_turns(node(3, 5))) {
        assert_eq!((part.turn(), part.generation(), part.node()), (number % 4, number / 4, node(3, 5)));
    }
    assert_eq!((Part::whole(node(3, 5)).turn(), Part::whole(node(3, 5)).generation()), (0, 0));
    assert_eq!(Part::in_turn(node(3, 5), 6, 3), Part::in_turn(node(3, 5), 2, 1));
}

#[test]
fn the_most_nodes_have_parts() {
    let most = 1 << 28;
    for (id, count) in [(0, most + 1), (7, 1 << 29), (0, u32::MAX), (u32::MAX - 1, u32::MAX)] {
        assert!(matches!(Node::new(id, count), Err(Error::NodeOutOfRange { .. })), "{id} of {count}");
    }
    // A layout with the most workers that there can be.
    let wide = layout(1000, [1, 63, 0], true);
    follow_each_other(&wide, in_turns(node(most - 1, most)));
}

/// The rule never changes once it is released, because sessions of several versions rely on it.
#[test]
fn workers_are_divided_if_there_are_enough_and_else_the_sequence() {
    let numbers = |name, nodes| {
        let part = Part::in_turn(node(nodes - 1, nodes), 2, 0);
        let (workers, sequences) = part.numbers(built_in(name).unwrap()).unwrap();
        [workers, sequences].map(|Numbers { first, count }| (first, count))
    };
    for (name, nodes, own) in [
        ("twitter", 1, [(256, 128), (0, 4096)]),
        ("twitter", 128, [(1018, 1), (0, 4096)]),
        ("twitter", 256, [(1020, 4), (1024, 512)]),
        ("twitter", 1024, [(1023, 1), (1024, 512)]),
        ("si", 1, [(8, 4), (0, 256)]),
        ("si_single", 1, [(0, 1), (2048, 1024)]),
        ("uniqueid", 256, [(1020, 4), (16, 8)]),
    ] {
        assert_eq!(numbers(name, nodes), own, "{name} as one of {nodes}");
    }
    // Two workers with four sequence numbers each: one number for each part.
    let few = layout(1000, [40, 1, 2], true);
    let all = in_turns(node(0, 1)).map(|part| part.numbers(&few).unwrap());
    let all: Vec<_> = all.map(|(workers, sequences)| (workers.first, sequences.first)).collect();
    assert_eq!(all, [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)]);
}
