//! The IDs that a session makes.

use std::cell::Cell;
use std::collections::HashSet;

use flake_core::{Answer, Generator, IdSource, Node, SequenceRule, Share, Slot, Start};
use proptest::prelude::*;

use crate::layouts::any_layout;

/// A generator that begins above the tick that contains `now`.
fn above<S: IdSource>(source: S, share: &Share, now: i64, position: u64) -> Generator<S> {
    Generator::start(source, share, Start { free_from: now + 1, resumed: None }, i64::MIN, position)
}

thread_local!(static DRAWN: Cell<u64> = const { Cell::new(0) });

/// Draws numbers that differ from each other in most bits.
fn draw() -> u64 {
    DRAWN.set(DRAWN.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
    DRAWN.get()
}

proptest! {
    #![proptest_config(crate::config())]

    /// Two sessions have adjacent slots, and clocks jump. No ID is made twice, each lies in its session's share, and a session's
    /// ticks never go back.
    #[test]
    fn generators_never_repeat(
        layout in any_layout(),
        slots in 2u32..300,
        slot in 0u32..299,
        position: u64,
        steps in prop::collection::vec((-3i64..9, 1usize..400, any::<bool>()), 1..40),
    ) {
        let node = Node::new(0, 1).unwrap();
        let slot = slot % (slots - 1);
        let shares = [slot, slot + 1].map(|number| Share::new(&layout, node, Slot::new(number, slots).unwrap()));
        let [Ok(first), Ok(second)] = shares else { return Ok(()) };
        let mut now = layout.start_of(1_000);
        let start = now;
        let mut sessions =
            [first, second].map(|share| (share, above(&layout, &share, now, position), 0));
        let mut issued = HashSet::new();
        for (jump, asked, which) in steps {
            now += jump * layout.tick_length() / 2;
            let (share, generator, last_tick) = &mut sessions[usize::from(which)];
            for _ in 0..asked {
                match generator.next(now, || 0) {
                    Answer::Issue(id) => {
                        let parts = layout.unpack(id).unwrap();
                        prop_assert!(issued.insert(id), "{} twice", id);
                        prop_assert!(layout.start_of(parts.tick) <= now && now < layout.start_of(parts.tick + 1));
                        prop_assert!(parts.tick >= *last_tick && layout.start_of(parts.tick) > start);
                        prop_assert!(parts.worker.wrapping_sub(share.workers.first) < share.workers.count);
                        prop_assert!(parts.sequence.wrapping_sub(share.sequences.first) < share.sequences.count);
                        *last_tick = parts.tick;
                    }
                    Answer::Wait { until } | Answer::Ahead { until } => {
                        prop_assert!(until > now && until <= now + layout.tick_length());
                        break;
                    }
                    Answer::ClockBehind { until } => {
                        prop_assert!(until > now);
                        break;
                    }
                    Answer::Outside { .. } => prop_assert!(false, "all time may be used"),
                    Answer::Exhausted => prop_assert!(false, "the timestamp is not used up"),
                }
            }
        }
    }

    /// IDs that are made in one call are the same as IDs that are made one by one.
    #[test]
    fn fill_is_next_again_and_again(
        layout in any_layout(),
        slots in 1u32..300,
        position: u64,
        steps in prop::collection::vec((-3i64..9, 0usize..700), 1..20),
    ) {
        let share = Share::new(&layout, Node::new(0, 1).unwrap(), Slot::new(0, slots).unwrap());
        let Ok(share) = share else { return Ok(()) };
        let mut now = layout.start_of(1_000);
        let mut one = above(&layout, &share, now, position);
        let mut many = one.clone();
        for (jump, count) in steps {
            now += jump * layout.tick_length() / 2;
            let drawn = DRAWN.get();
            let mut ids = vec![0; count];
            let made = many.fill(now, &mut ids, draw);
            DRAWN.set(drawn);
            let mut expected = Vec::new();
            while expected.len() < count
                && let Answer::Issue(id) = one.next(now, draw)
            {
                expected.push(id);
            }
            prop_assert_eq!(&ids[..made], &expected);
            prop_assert_eq!((many.progress(), many.issued()), (one.progress(), one.issued()));
        }
    }

    /// The promise of [`Layout::increases`].
    #[test]
    fn ids_increase_where_promised(layout in any_layout(), slots in 1u32..300, position: u64, random: u64) {
        if !layout.increases() {
            return Ok(());
        }
        let Ok(share) = Share::new(&layout, Node::new(0, 1).unwrap(), Slot::new(0, slots).unwrap()) else { return Ok(()) };
        let mut now = layout.start_of(1_000);
        let mut generator = above(&layout, &share, now, position);
        let mut last = 0;
        let mut state = random;
        for _ in 0..2_000 {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            DRAWN.set(state);
            now += (state >> 60) as i64 * layout.tick_length().div_euclid(100).max(1);
            if let Answer::Issue(id) = generator.next(now, || DRAWN.get()) {
                prop_assert!(id > last, "{} after {}", id, last);
                last = id;
            }
        }
    }

    /// Within one tick, a generator issues each position of its share once.
    #[test]
    fn a_tick_yields_the_whole_share(layout in any_layout(), slots in 1u32..300, slot in 0u32..300, position: u64) {
        let slot = Slot::new(slot % slots, slots).unwrap();
        let Ok(share) = Share::new(&layout, Node::new(0, 1).unwrap(), slot) else { return Ok(()) };
        prop_assume!(share.size() <= 20_000);
        let start = layout.start_of(1_000);
        let mut generator = above(&layout, &share, start - 1, position);
        let mut ids = HashSet::new();
        while let Answer::Issue(id) = generator.next(start, || 0) {
            ids.insert(id);
        }
        // A rolling sequence begins in the middle of the first step, unless the tick has one step only.
        let is_rolling = layout.rule == SequenceRule::Rolling && share.steps > 1;
        let skipped = if is_rolling { position % share.size() % share.ids_per_step } else { 0 };
        prop_assert_eq!(ids.len() as u64, share.size() - skipped);
        prop_assert_eq!(generator.issued(), share.size() - skipped);
    }

    /// A session asks again whenever it was told to. It makes each position of each tick once, whether or not it keeps pace, and it
    /// does not keep pace in the first tick after a pause.
    #[test]
    fn a_session_that_uses_up_its_ticks_keeps_pace_and_loses_nothing(
        layout in any_layout(),
        slots in 1u32..300,
        slot in 0u32..300,
        rest in 2i64..5,
    ) {
        let slot = Slot::new(slot % slots, slots).unwrap();
        let Ok(share) = Share::new(&layout, Node::new(0, 1).unwrap(), slot) else { return Ok(()) };
        prop_assume!(share.size() <= 10_000);
        let mut now = layout.start_of(1_000);
        let mut generator = above(&layout, &share, now - 1, 0);
        let length = layout.tick_length();
        for (tick, is_free) in [(1_000, true), (1_001, false), (1_002, false), (1_002 + rest as u64, rest > 2)] {
            let (start, mut ids) = (layout.start_of(tick), HashSet::new());
            now = start;
            while now < start + length {
                match generator.next(now, || 0) {
                    Answer::Issue(id) => {
                        let first_of_step = ids.len() as u64 / share.ids_per_step;
                        let begins = i128::from(first_of_step) * i128::from(length) / i128::from(share.steps);
                        let is_near = begins - i128::from(now - start) <= 256 + i128::from(length) / i128::from(share.steps);
                        prop_assert!(is_free || is_near || length as u64 / share.steps > 1000, "{} {}", now - start, begins);
                        ids.insert(id);
                    }
                    Answer::Ahead { until } => {
                        prop_assert!(!is_free && until > now && until < start + length);
                        now = until;
                    }
                    answer => {
                        prop_assert_eq!(answer, Answer::Wait { until: start + length });
                        now = start + length;
                    }
                }
            }
            // A rolling sequence continues within the first step, unless the tick has one step only.
            let is_whole = layout.rule == SequenceRule::Reset || share.steps == 1;
            let least = if is_whole { share.size() } else { share.size() - share.ids_per_step + 1 };
            prop_assert!(ids.len() as u64 >= least, "{} of {}", ids.len(), share.size());
        }
    }
}
