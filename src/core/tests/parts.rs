//! Parts: what the server of a node may use in a turn belongs to no other node or turn.

use flake_core::{Error, Node, Numbers, PARTS, Part, TURNS, built_in};

mod made;
use made::layout;

fn node(id: u32, count: u32) -> Node {
    Node::new(id, count).unwrap()
}

/// The parts of a node in all turns of both generations.
fn in_turns(node: Node) -> impl Iterator<Item = Part> {
    (0..PARTS).map(move |number| Part::in_turn(node, number % TURNS, number / TURNS))
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
    let wide = layout(1000, "t1 w63");
    let workers = in_turns(node(most - 1, most)).map(|part| part.numbers(&wide).unwrap().0);
    assert!(workers.collect::<Vec<_>>().windows(2).all(|pair| pair[0].first + pair[0].count == pair[1].first));
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
    let few = layout(1000, "t40 w1 s2");
    let all = in_turns(node(0, 1)).map(|part| part.numbers(&few).unwrap());
    let all: Vec<_> = all.map(|(workers, sequences)| (workers.first, sequences.first)).collect();
    assert_eq!(all, [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)]);
}
