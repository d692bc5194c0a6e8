//! What holds for every layout, built in or not.

use std::collections::HashSet;

use flake_core::{BUILTIN, Error, Field, Generator, Layout, Node, Parts, Role, SequenceRule, Share, Slot, Step};
use proptest::prelude::*;

/// Layouts with a timestamp, up to four worker fields, and the rest in any order.
fn any_layout() -> impl Strategy<Value = Layout> {
    let custom = (
        prop::collection::vec((0u8..5, 1u8..7, 0u8..3), 0..6),
        20u8..41,
        any::<bool>(),
        0usize..6,
        prop::sample::select(vec![1i64, 10, 1_000, 4_000, 10_000, 1_000_000]),
        any::<bool>(),
    )
        .prop_map(|(rest, time_bits, reversed, place, tick, rolling)| {
            let (mut sequences, mut workers) = (0, 0);
            let mut fields: Vec<Field> = rest
                .into_iter()
                .enumerate()
                .map(|(number, (role, bits, rank))| {
                    let role = match role {
                        0 if sequences == 0 => {
                            sequences += 1;
                            Role::Sequence
                        }
                        1 => Role::Random,
                        2 => Role::Reserved { value: u64::from(rank) & 1 },
                        _ if workers < 4 => {
                            workers += 1;
                            Role::Worker { rank }
                        }
                        _ => Role::Random,
                    };
                    Field { name: format!("f{number}").into(), bits, role }
                })
                .collect();
            let timestamp = Field { name: "timestamp".into(), bits: time_bits, role: Role::Timestamp { reversed } };
            fields.insert(place.min(fields.len()), timestamp);
            while fields.iter().map(|field| u32::from(field.bits)).sum::<u32>() > 64 {
                fields.pop_if(|field| !matches!(field.role, Role::Timestamp { .. })).or_else(|| Some(fields.remove(0)));
            }
            let rule = if rolling { SequenceRule::Rolling } else { SequenceRule::Reset };
            Layout::new("custom", 1_000_000_000_000_000, tick, fields, rule).unwrap()
        });
    prop_oneof![(0..BUILTIN.len()).prop_map(|i| BUILTIN[i].clone()), custom]
}

fn parts_of(layout: &Layout, [tick, worker, sequence, random]: [u64; 4]) -> Parts {
    Parts {
        tick: tick % (layout.last_tick() + 1),
        worker: worker % layout.workers(),
        sequence: sequence % layout.sequences(),
        random,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn unpack_undoes_pack(layout in any_layout(), numbers: [u64; 4]) {
        let parts = parts_of(&layout, numbers);
        let id = layout.pack(&parts).unwrap();
        let back = layout.unpack(id).unwrap();
        prop_assert_eq!((back.tick, back.worker, back.sequence), (parts.tick, parts.worker, parts.sequence));
        prop_assert_eq!(layout.pack(&back).unwrap(), id);
        prop_assert_eq!(layout.tick_at(layout.start_of(parts.tick)).unwrap(), parts.tick);
        prop_assert_eq!(layout.tick_at(layout.start_of(parts.tick) + layout.tick() - 1).unwrap(), parts.tick);
    }

    #[test]
    fn every_number_unpacks_and_packs_or_is_refused(layout in any_layout(), id: u64) {
        match layout.unpack(id) {
            Ok(parts) => prop_assert_eq!(layout.pack(&parts).unwrap(), id),
            Err(Error::ImpossibleId { above, field, .. }) => prop_assert!(above || field.is_some()),
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn parts_too_large_are_refused(layout in any_layout(), numbers: [u64; 4], which in 0usize..3) {
        let mut parts = parts_of(&layout, numbers);
        let (part, beyond) = match which {
            0 => (&mut parts.tick, layout.last_tick() + 1),
            1 => (&mut parts.worker, layout.workers()),
            _ => (&mut parts.sequence, layout.sequences()),
        };
        *part = beyond;
        let refused = matches!(layout.pack(&parts), Err(Error::PartOutOfRange { .. }));
        prop_assert!(refused);
    }

    #[test]
    fn ordered_layouts_order_by_time(layout in any_layout(), one: [u64; 4], two: [u64; 4]) {
        let (one, two) = (parts_of(&layout, one), parts_of(&layout, two));
        let (id, other) = (layout.pack(&one).unwrap() as i64, layout.pack(&two).unwrap() as i64);
        let at = layout.start_of(one.tick);
        match layout.last_ordered_tick() {
            None => prop_assert_eq!(layout.min_at(at), Err(Error::NotTimeOrdered { layout: layout.name().to_owned().into() })),
            Some(last) if one.tick > last => {
                let refused = matches!(layout.max_at(at), Err(Error::InstantOutOfRange { .. }));
                prop_assert!(refused);
            }
            Some(last) => {
                prop_assert!(layout.min_at(at).unwrap() as i64 <= id && id <= layout.max_at(at).unwrap() as i64);
                if one.tick < two.tick && two.tick <= last {
                    prop_assert!(id < other);
                }
            }
        }
    }

    #[test]
    fn no_instant_panics(layout in any_layout(), at: i64) {
        let tick = layout.tick_at(at);
        if let Ok(tick) = tick {
            prop_assert!(layout.start_of(tick) <= at && at - layout.start_of(tick) < layout.tick());
        }
        let _ = (layout.min_at(at), layout.max_at(at));
    }

    /// Two sessions with neighbouring slots and clocks that jump about: no ID twice, each ID in its share, and a session's
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
            [first, second].map(|share| (share, Generator::above(&layout, &share, now, position).unwrap(), 0));
        let mut issued = HashSet::new();
        for (jump, asked, which) in steps {
            now += jump * layout.tick() / 2;
            let (share, generator, last_tick) = &mut sessions[usize::from(which)];
            for _ in 0..asked {
                match generator.next(now, || 0) {
                    Step::Issue(id) => {
                        let parts = layout.unpack(id).unwrap();
                        prop_assert!(issued.insert(id), "{} twice", id);
                        prop_assert!(layout.start_of(parts.tick) <= now && now < layout.start_of(parts.tick + 1));
                        prop_assert!(parts.tick >= *last_tick && layout.start_of(parts.tick) > start);
                        prop_assert!(parts.worker.wrapping_sub(share.workers.first) < share.workers.count);
                        prop_assert!(parts.sequence.wrapping_sub(share.sequences.first) < share.sequences.count);
                        *last_tick = parts.tick;
                    }
                    Step::Wait { until } => {
                        prop_assert!(until > now && until <= now + layout.tick());
                        break;
                    }
                    Step::ClockBehind { until } => {
                        prop_assert!(until > now);
                        break;
                    }
                    Step::Exhausted => prop_assert!(false, "the timestamp is not used up"),
                }
            }
        }
    }

    /// Within one tick a generator issues its whole share, each position once.
    #[test]
    fn a_tick_yields_the_whole_share(layout in any_layout(), slots in 1u32..300, slot in 0u32..300, position: u64) {
        let slot = Slot::new(slot % slots, slots).unwrap();
        let Ok(share) = Share::new(&layout, Node::new(0, 1).unwrap(), slot) else { return Ok(()) };
        prop_assume!(share.size() <= 20_000);
        let start = layout.start_of(1_000);
        let mut generator = Generator::above(&layout, &share, start - 1, position).unwrap();
        let mut ids = HashSet::new();
        while let Step::Issue(id) = generator.next(start, || 0) {
            ids.insert(id);
        }
        prop_assert_eq!(ids.len() as u64, share.size());
        prop_assert_eq!(generator.issued(), share.size());
    }
}
