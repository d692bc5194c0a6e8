//! The IDs that sessions make.

use std::cell::Cell;
use std::collections::HashSet;

use flake_core::{Answer, Generator, IdSource, Lanes, Layout, Node, OwnCursors, Part};
use proptest::prelude::*;

use crate::layouts::any_layout;

/// The lanes of a part of a node with these numbers, or of all that the node has, if the last number says so.
fn lanes(layout: &Layout, (id, count, number): (u32, u32, u32)) -> Option<(Lanes, OwnCursors)> {
    let node = Node::new(id % count, count).unwrap();
    let part = match number {
        0..8 => Part::in_turn(node, number % 4, number / 4),
        _ => Part::whole(node),
    };
    let lanes = Lanes::new(layout, part).ok()?;
    Some((lanes, OwnCursors::new(&lanes)))
}

/// A generator that begins above the tick that contains `now`.
fn above<S: IdSource>(source: S, lanes: &Lanes, lane: u64, now: i64) -> Generator<S> {
    Generator::start(source, lanes, lane % lanes.count, now + 1)
}

thread_local!(static DRAWN: Cell<u64> = const { Cell::new(0) });

/// Draws numbers that differ from each other in most bits.
fn draw() -> u64 {
    DRAWN.set(DRAWN.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
    DRAWN.get()
}

fn part() -> impl Strategy<Value = (u32, u32, u32)> {
    prop_oneof![(Just(0), Just(1), 0..12u32), (0u32..9, 2u32..9, 0..12u32)]
}

/// A part that has few IDs of a layout, if others have some.
fn small_part() -> impl Strategy<Value = (u32, u32, u32)> {
    prop_oneof![part(), (0u32..2_000, 100u32..1025, 0..12u32)]
}

/// Longer ticks take long.
fn is_small(lanes: &Lanes) -> bool {
    lanes.size() * lanes.count <= 20_000
}

proptest! {
    #![proptest_config(crate::config())]

    /// Sessions have equal or different lanes, and clocks jump, within ticks and beyond them. No ID is made twice, each lies in the
    /// part and in the clock's tick, and a session's ticks never go back.
    #[test]
    fn sessions_that_share_cursors_never_repeat(
        layout in any_layout(),
        part in part(),
        own in prop::collection::vec(0u64..32, 2..5),
        steps in prop::collection::vec((-300i64..900, any::<bool>(), 1usize..400, 0usize..5), 1..40),
    ) {
        let Some((lanes, cursors)) = lanes(&layout, part) else { return Ok(()) };
        let start = layout.start_of(1_000);
        let mut now = start;
        let mut sessions: Vec<_> = own.iter().map(|&lane| (above(&layout, &lanes, lane, now), 0, 0)).collect();
        let mut issued = HashSet::new();
        for (jump, is_short, asked, which) in steps {
            now += jump * layout.tick_length() / if is_short { 10_000 } else { 200 };
            let which = which % sessions.len();
            let (generator, last_tick, last_id) = &mut sessions[which];
            for _ in 0..asked {
                match generator.next(now, &cursors, || 0) {
                    Answer::Issue(id) => {
                        let parts = layout.unpack(id).unwrap();
                        prop_assert!(issued.insert(id), "{} twice", id);
                        prop_assert!(layout.start_of(parts.tick) <= now && now < layout.start_of(parts.tick + 1));
                        prop_assert!(parts.tick >= *last_tick && layout.start_of(parts.tick) > start);
                        prop_assert!(!layout.increases() || id > *last_id, "{} after {}", id, last_id);
                        prop_assert!(parts.worker.wrapping_sub(lanes.workers.first) < lanes.workers.count);
                        prop_assert!(parts.sequence.wrapping_sub(lanes.sequences.first) < lanes.sequences.count);
                        (*last_tick, *last_id) = (parts.tick, id);
                    }
                    Answer::Wait { until } | Answer::Ahead { until } => {
                        prop_assert!(until > now && until <= now + layout.tick_length());
                        break;
                    }
                    Answer::Behind { until } | Answer::Closed { until } => {
                        prop_assert!(until > now);
                        break;
                    }
                    answer => prop_assert!(false, "{:?}: all time may be used", answer),
                }
            }
        }
    }

    /// IDs that are made in one call are the same as IDs that are made one by one.
    #[test]
    fn fill_is_next_again_and_again(
        layout in any_layout(),
        part in part(),
        lane in 0u64..32,
        steps in prop::collection::vec((-3i64..9, 0usize..700), 1..20),
    ) {
        let Some((lanes, cursors)) = lanes(&layout, part) else { return Ok(()) };
        let others = OwnCursors::new(&lanes);
        let mut now = layout.start_of(1_000);
        let mut one = above(&layout, &lanes, lane, now);
        let mut many = one.clone();
        for (jump, count) in steps {
            now += jump * layout.tick_length() / 2;
            let drawn = DRAWN.get();
            let mut ids = vec![0; count];
            let made = many.fill(now, &cursors, &mut ids, draw);
            DRAWN.set(drawn);
            let mut expected = Vec::new();
            while expected.len() < count
                && let Answer::Issue(id) = one.next(now, &others, draw)
            {
                expected.push(id);
            }
            prop_assert_eq!(&ids[..made], &expected);
            prop_assert_eq!(many.issued(), one.issued());
        }
    }

    /// A session of each lane takes part in turn, and asks again whenever it was told to. Together they make each ID of each tick
    /// once. If the first session reaches the second step, the IDs below its own place in the first one are left out.
    #[test]
    fn sessions_of_all_lanes_make_all_ids_of_a_tick(layout in any_layout(), part in small_part(), first in 1_000u64..9_000) {
        let Some((lanes, cursors)) = lanes(&layout, part) else { return Ok(()) };
        if !is_small(&lanes) {
            return Ok(());
        }
        let length = layout.tick_length();
        let mut now = layout.start_of(first);
        let mut sessions: Vec<_> = (0..lanes.count).map(|lane| above(&layout, &lanes, lane, now - 1)).collect();
        for tick in [first, first + 1, first + 3] {
            let (start, mut ids) = (layout.start_of(tick), HashSet::new());
            now = start;
            while now < start + length {
                let mut next = start + length;
                for session in &mut sessions {
                    loop {
                        match session.next(now, &cursors, || 0) {
                            Answer::Issue(id) => prop_assert!(ids.insert(id), "{} twice", id),
                            Answer::Ahead { until } => {
                                prop_assert!(until > now && until < start + length);
                                next = next.min(until);
                                break;
                            }
                            answer => {
                                prop_assert_eq!(answer, Answer::Wait { until: start + length });
                                break;
                            }
                        }
                    }
                }
                now = next;
            }
            let below = if lanes.steps == 1 { 0 } else { lanes.place(0, tick, 0) * lanes.ids_per_step };
            prop_assert_eq!(ids.len() as u64, lanes.size() * lanes.count - below);
        }
    }

    /// A session that is alone makes all IDs of a tick. If they are in the order of time, it makes those from its first one on: below
    /// that are the places of other lanes in the first step.
    #[test]
    fn a_lone_session_makes_all_ids_of_a_tick(layout in any_layout(), part in small_part(), lane in 0u64..32, tick in 1_000u64..9_000) {
        let Some((lanes, cursors)) = lanes(&layout, part) else { return Ok(()) };
        if !is_small(&lanes) {
            return Ok(());
        }
        let (start, length) = (layout.start_of(tick), layout.tick_length());
        let mut session = above(&layout, &lanes, lane, start - 1);
        let (mut now, mut ids) = (start, Vec::new());
        let end = loop {
            match session.next(now, &cursors, || 0) {
                Answer::Issue(id) => ids.push(id),
                Answer::Ahead { until } => now = until,
                answer => break answer,
            }
        };
        prop_assert_eq!(end, Answer::Wait { until: start + length });
        prop_assert!(!layout.increases() || ids.is_sorted_by(|one, next| one < next));
        let below = if lanes.are_ordered { lanes.place(lane % lanes.count, tick, 0) * lanes.ids_per_step } else { 0 };
        prop_assert_eq!(ids.len() as u64, lanes.size() * lanes.count - below);
        prop_assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    }
}
