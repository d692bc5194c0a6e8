//! Lanes: how IDs of a tick are divided, that no ID belongs to two lanes, parts or nodes, and that IDs are spread.

use flake_core::{
    Answer, BUILTIN, Error, Generator, IdSource, Lanes, Layout, Node, Numbers, OwnCursors, Part, Parts, Role,
    SnoSource, built_in,
};
use proptest::prelude::*;

fn node(id: u32, count: u32) -> Node {
    Node::new(id, count).unwrap()
}

/// The lanes of all IDs of a node.
fn lanes_of(layout: &Layout, (id, count): (u32, u32)) -> Result<Lanes, Error> {
    Lanes::new(layout, Part::whole(node(id, count)))
}

/// The parts of all these nodes in all turns of both generations.
fn parts(nodes: u32) -> impl Iterator<Item = Part> {
    (0..nodes).flat_map(move |id| (0..8).map(move |number| Part::in_turn(node(id, nodes), number % 4, number / 4)))
}

/// How many lanes and steps there are, how many IDs a lane has in a step, and how many all lanes have in a tick.
fn division(name: &str, nodes: u32) -> (u64, u64, u64, u64) {
    let lanes = lanes_of(built_in(name).unwrap(), (0, nodes)).unwrap();
    assert_eq!(lanes.size(), lanes.steps * lanes.ids_per_step);
    (lanes.count, lanes.steps, lanes.ids_per_step, lanes.count * lanes.size())
}

#[test]
fn a_lane_has_enough_ids_for_a_session() {
    assert_eq!(division("twitter", 1), (32, 63, 2079, 4_191_264));
    assert_eq!(division("twitter", 4), (32, 63, 519, 1_046_304));
    assert_eq!(division("twitter", 8), (16, 63, 519, 523_152));
    assert_eq!(division("twitter", 32), (4, 63, 519, 130_788));
    assert_eq!(division("twitter", 1024), (2, 66, 31, 4_092));
    assert_eq!(division("si", 1), (2, 63, 65, 8_190));
    assert_eq!(division("si", 32), (2, 128, 1, 256));
    assert_eq!(division("base64id", 1), (2, 87_381, 3, 524_286));
    assert_eq!(division("base64id", 512), (1, 1024, 1, 1024));
    assert_eq!(division("sonyflake", 1), (32, 626, 837, 16_766_784));
}

#[test]
fn procs_begin_with_the_lanes_in_turn() {
    let si = lanes_of(built_in("si").unwrap(), (0, 1)).unwrap();
    assert_eq!([0, 1, 2, 3, 4].map(|proc| si.of(proc)), [0, 1, 0, 1, 0]);
}

/// If a lane had an even number of IDs in a step, all of its first IDs would be even.
#[test]
fn a_lane_has_an_odd_number_of_ids_in_each_of_several_steps() {
    let mut seen = 0;
    for layout in BUILTIN.iter().filter(|layout| layout.generates) {
        for nodes in [1, 2, 3, 5, 8, 32, 100, 128, 512, 1024] {
            for part in [Part::whole(node(0, nodes)), Part::in_turn(node(0, nodes), 1, 0)] {
                let Ok(lanes) = Lanes::new(layout, part) else { continue };
                let Lanes { count, steps, ids_per_step, .. } = lanes;
                assert!(steps == 1 || ids_per_step % 2 == 1, "{} as one of {nodes} nodes: {lanes:?}", layout.name());
                assert!(count.is_power_of_two() && count <= 32);
                let (all, used) = (lanes.workers.count * lanes.sequences.count, steps * count * ids_per_step);
                // Where a tick has one step, a lane leaves out an ID at most.
                let is_one_less = steps == 1 && all - used <= count;
                assert!(
                    used <= all && (used as f64 > 0.97 * all as f64 || is_one_less),
                    "{used} of {all} IDs: {lanes:?}"
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 200, "{seen}");
}

#[test]
fn layouts_that_are_not_ordered_by_time_have_one_step() {
    for (name, in_order) in [("uniqueid", false), ("seata", false), ("sonyflake", true), ("base64id", true)] {
        let lanes = lanes_of(built_in(name).unwrap(), (0, 1)).unwrap();
        assert_eq!(lanes.steps > 1, in_order, "{name}: {lanes:?}");
    }
}

/// In each step, and in each tick, another lane has the first place.
#[test]
fn places_of_lanes_are_a_permutation() {
    for (name, nodes) in [("twitter", 1), ("twitter", 8), ("twitter", 1024), ("si", 1), ("base64id", 512)] {
        let lanes = lanes_of(built_in(name).unwrap(), (0, nodes)).unwrap();
        for (tick, step) in (0..70).flat_map(|tick| (0..lanes.steps).map(move |step| (tick, step))).step_by(3) {
            let mut places: Vec<_> = (0..lanes.count).map(|lane| lanes.place(lane, tick, step)).collect();
            assert_eq!((places[0] + 1) % lanes.count, lanes.place(0, tick + 1, step));
            assert_eq!((places[0] + 1) % lanes.count, lanes.place(0, tick, step + 1));
            places.sort_unstable();
            assert!(places.into_iter().eq(0..lanes.count), "tick {tick}, step {step} of {lanes:?}");
        }
        // A cursor is a number of 64 bits, and so may a tick be.
        assert!(lanes.place(lanes.count - 1, u64::MAX, 1) < lanes.count);
    }
}

#[test]
fn nodes_are_the_coarsest_field() {
    let fields = |name, node| {
        let layout = built_in(name).unwrap();
        let Numbers { first, count } = lanes_of(layout, node).unwrap().workers;
        let id = move |worker| layout.pack(&Parts { tick: 1000, worker, sequence: 5, random: 0 }).unwrap();
        (first..first + count).map(move |worker| (id(worker), layout.numbers(id(worker))))
    };
    assert!(fields("twitter", (9, 32)).all(|(_, numbers)| numbers[1].1 == 9), "node = datacenter");
    assert!(fields("uniqueid", (9, 16)).all(|(id, _)| id & 15 == 9), "node = cluster");
}

/// A table that is divided by `id % n` has rows in each part, although each session inserts one row at a time.
#[test]
fn single_ids_of_sessions_are_spread() {
    let names = ["twitter", "si", "tsid", "discord", "instagram", "sonyflake", "seata", "influxdb", "mastodon"];
    for (name, nodes) in names.map(|name| (name, 1)).into_iter().chain([("twitter", 1024), ("si", 32)]) {
        let layout = built_in(name).unwrap();
        let lanes = Lanes::new(layout, Part::in_turn(node(0, nodes), 1, 0)).unwrap();
        let cursors = OwnCursors::new(&lanes);
        let mut now = layout.start_of(1_000_000);
        let mut state = 1u64;
        let mut random = |limit: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) % limit
        };
        // The sessions stay, or each of them makes one ID only.
        let mut sessions: Vec<_> = (0..8).map(|proc| session(layout, &lanes, proc, now)).collect();
        let mut found = [vec![0u32; 2], vec![0; 8], vec![0; 32]];
        for turn in 0..32_000 {
            now += 1 + random(3 * layout.tick_length() as u64) as i64;
            let proc = random(8);
            let chosen = &mut sessions[proc as usize];
            if turn % 2 == 0 {
                *chosen = session(layout, &lanes, proc, now - layout.tick_length());
            }
            let Answer::Issue(id) = chosen.next(now, &cursors, || 0) else { continue };
            // The bits of worker and sequence, from the lowest one on.
            let number = id >> lowest_counted_bit(layout);
            for times in &mut found {
                let parts = times.len() as u64;
                times[(number % parts) as usize] += 1;
            }
        }
        for times in found {
            let mean = times.iter().sum::<u32>() / times.len() as u32;
            assert!(mean > 500, "{name}: {times:?}");
            assert!(
                times.iter().all(|&times| times > mean / 2 && times < 2 * mean),
                "{name}, {nodes} nodes: {times:?}"
            );
        }
    }
}

fn session<'a>(layout: &'a Layout, lanes: &Lanes, proc: u64, now: i64) -> Generator<&'a Layout> {
    Generator::start(layout, lanes, proc % lanes.count, now)
}

fn lowest_counted_bit(layout: &Layout) -> u32 {
    let mut shift = 0;
    for field in layout.fields().iter().rev() {
        if matches!(field.role, Role::Worker { .. } | Role::Sequence) {
            return shift;
        }
        shift += u32::from(field.bits);
    }
    panic!("{} has neither a worker nor a sequence", layout.name())
}

/// Each part has automatic partitions of its own, which no caller can name.
#[test]
fn automatic_partitions_are_nobody_elses() {
    let mut free = 1 << 15;
    for part in parts(7) {
        let Numbers { first, count } = SnoSource { partition: None }.lanes(part).unwrap().workers;
        assert!(first >= free && count > 0, "{part:?} has partitions from {first} on");
        free = first + count;
    }
    assert!(free <= 1 << 16, "the parts have {free} partitions, more than there are");
    let of_caller = |partition| SnoSource { partition: Some(partition) }.lanes(Part::whole(node(0, 1)));
    assert_eq!(of_caller((1 << 15) - 1).unwrap().workers, Numbers { first: (1 << 15) - 1, count: 1 });
    assert!(matches!(of_caller(1 << 15), Err(Error::SnoPart { number: 32768, .. })));
}

#[test]
fn configurations_that_leave_a_node_without_ids_are_refused() {
    let twitter = built_in("twitter").unwrap();
    assert!(matches!(Node::new(4, 4), Err(Error::NodeOutOfRange { id: 4, count: 4 })));
    let error = lanes_of(twitter, (0, 1025)).unwrap_err();
    assert!(matches!(error, Error::TooManyNodes { workers: 1024, nodes: 1025, .. }));
    assert!(lanes_of(twitter, (0, 1024)).is_ok());
    let sno = |partition, id, nodes| {
        let lanes = SnoSource { partition }.lanes(Part::in_turn(node(id, nodes), 1, 0));
        lanes.map(|lanes| lanes.count * lanes.size())
    };
    assert!(matches!(sno(None, 3, 100_000), Err(Error::TooManyNodes { workers: 32768, nodes: 100_000, .. })));
    assert!(matches!(sno(Some(7), 3, 100_000), Err(Error::TooFewIds { workers: 1, sequences: 0, parts: 8, .. })));
    let whole = SnoSource { partition: Some(7) }.lanes(Part::whole(node(3, 100_000)));
    assert!(whole.is_err() || whole.is_ok_and(|lanes| lanes.sequences.count == 0));
    // A node with one automatic partition has an eighth of its snos in a part.
    assert!(sno(None, 0, 1 << 15).unwrap() > 8000);
}

/// A cursor fits into 64 bits until the last tick, also without parts.
#[test]
fn cursors_of_snos_do_not_overflow() {
    for part in [Part::whole(node(0, 1)), Part::in_turn(node(0, 1), 0, 0)] {
        for partition in [None, Some(7)] {
            let lanes = SnoSource { partition }.lanes(part).unwrap();
            assert!(((1u128 << 39) + 1) * u128::from(lanes.size()) < 1 << 64, "{lanes:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// IDs that different sessions make at least a step apart are in the order of time.
    #[test]
    fn sessions_are_in_order(
        layout in prop::sample::select(vec!["twitter", "sonyflake", "tsid", "leaf", "discord", "instagram", "base64id"]),
        nodes in prop::sample::select(vec![1u32, 8, 100, 512]),
        turn in prop::option::of(0u32..4),
        pair: (u64, u64),
        instants: (i64, i64),
    ) {
        let layout = built_in(layout).unwrap();
        let of_turn = |turn| Part::in_turn(node(0, nodes), turn, 0);
        let lanes = Lanes::new(layout, turn.map_or_else(|| Part::whole(node(0, nodes)), of_turn)).unwrap();
        let cursors = OwnCursors::new(&lanes);
        let (start, length) = (layout.start_of(1_000), layout.tick_length());
        let (one, two) = (instants.0.rem_euclid(length), instants.1.rem_euclid(length));
        let instants = (one.min(two), one.max(two));
        let first = |proc, instant| {
            match session(layout, &lanes, proc, start).next(start + instant, &cursors, || 0) {
                Answer::Issue(id) => Some(id),
                // The other session has the only ID of the last step.
                Answer::Wait { .. } if lanes.count * lanes.ids_per_step == 1 => None,
                answer => panic!("{answer:?}"),
            }
        };
        let step = length / lanes.steps as i64 + 1;
        prop_assert!(step <= 17 || lanes.ids_per_step == 1);
        let ids = (first(pair.0, instants.0), first(pair.1, instants.1));
        prop_assert!(ids.0.is_some() && ids.0 != ids.1);
        if instants.1 - instants.0 > step {
            prop_assert!(ids.0 < ids.1, "{:?} before {:?}", ids.0, ids.1);
        }
    }
}
