//! What holds for every layout, built in or not.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use flake_core::{
    Answer, BUILTIN, Definition, Error, Field, FieldDefinition, Generator, IdSource, Layout, Node, Parts, Reversal,
    Role, SequenceRule, Share, Slot, Start, TextForm,
};
use proptest::prelude::*;

/// A generator that begins above the tick that holds `now`.
fn above<S: IdSource>(source: S, share: &Share, now: i64, position: u64) -> Generator<S> {
    Generator::start(source, share, Start { free_from: now + 1, resumed: None }, i64::MIN, position)
}

/// Layouts with a timestamp, up to four worker fields, and the rest in any order.
fn any_layout() -> impl Strategy<Value = Layout> {
    let custom = (
        prop::collection::vec((0u8..6, 1u8..7, 0u8..3), 0..6),
        prop_oneof![20u8..41, 41u8..64],
        any::<bool>(),
        0usize..6,
        prop::sample::select(vec![1i64, 10, 1_000, 4_000, 10_000, 1_000_000]),
        any::<bool>(),
        prop::sample::select(TextForm::ALL.to_vec()),
        prop::sample::select(vec!["2001-09-09T01:46:40Z", "1970-01-01T00:00:00Z", "-004713-11-24T00:00:00Z"]),
    )
        .prop_map(|(rest, time_bits, reversed, place, tick, rolling, text, epoch)| {
            let (mut sequences, mut workers, mut tags) = (0, 0, 0);
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
                        3 if tags == 0 => {
                            tags += 1;
                            Role::Tag
                        }
                        _ if workers < 4 => {
                            workers += 1;
                            Role::Worker { rank }
                        }
                        _ => Role::Random,
                    };
                    Field { name: format!("f{number}").into(), bits, role }
                })
                .collect();
            let reversed = if reversed { Reversal::Always } else { Reversal::Never };
            let role = Role::Timestamp { reversed };
            let timestamp = Field { name: "timestamp".into(), bits: time_bits, role };
            fields.insert(place.min(fields.len()), timestamp);
            while fields.iter().map(|field| u32::from(field.bits)).sum::<u32>() > 64 {
                fields.pop_if(|field| !matches!(field.role, Role::Timestamp { .. })).or_else(|| Some(fields.remove(0)));
            }
            // By way of JSON, like users' layouts.
            let definition = Definition {
                like: None,
                epoch: Some(epoch.to_owned()),
                tick: Some(format!("{tick}us")),
                fields: Some(fields.iter().map(FieldDefinition::from).collect()),
                sequence: Some(if rolling { SequenceRule::Rolling } else { SequenceRule::Reset }),
                text: Some(text),
            };
            let json = serde_json::to_string(&definition).unwrap();
            let layout = Definition::from_json("custom", &json).unwrap().check_new("custom", i64::MAX).unwrap();
            assert_eq!(layout.fields(), fields);
            layout
        });
    prop_oneof![(0..BUILTIN.len()).prop_map(|i| BUILTIN[i].clone()), custom]
}

/// A layout of a few bits below the timestamp, and perhaps a reserved bit above it.
fn narrow_layout(time_bits: u8, below: &[(u8, u8, u8)], zero: bool) -> Layout {
    let mut fields = vec![(time_bits, Role::Timestamp { reversed: Reversal::Never })];
    let (mut sequences, mut tags) = (0, 0);
    for &(role, bits, value) in below {
        let role = match role {
            0 if sequences == 0 => {
                sequences += 1;
                Role::Sequence
            }
            1 if tags == 0 => {
                tags += 1;
                Role::Tag
            }
            2 => Role::Random,
            3 => Role::Reserved { value: u64::from(value) },
            _ => Role::Worker { rank: value },
        };
        fields.push((bits, role));
    }
    if zero {
        fields.insert(0, (1, Role::Reserved { value: 0 }));
    }
    let fields = fields.into_iter().enumerate();
    let fields = fields.map(|(number, (bits, role))| Field { name: format!("f{number}").into(), bits, role }).collect();
    Layout::new("narrow", 0, 1_000, fields, SequenceRule::Reset).unwrap()
}

/// Every ID that the layout can have in a tick.
fn all_ids_of_tick(layout: &Layout, tick: u64) -> HashSet<u64> {
    let shift = layout.fields().iter().rev().take_while(|field| !matches!(field.role, Role::Timestamp { .. }));
    let bits: u32 = shift.map(|field| u32::from(field.bits)).sum();
    (0..1 << bits).map(|low| tick << bits | low).filter(|&id| layout.tick_of(id) == Ok(tick)).collect()
}

fn parts_of(layout: &Layout, [tick, worker, sequence, random]: [u64; 4]) -> Parts {
    Parts {
        tick: tick % (layout.last_tick() + 1),
        worker: worker % layout.workers(),
        sequence: sequence % layout.sequences(),
        random,
    }
}

/// The number with the layout's reserved bits, and with tick 0 if its tick is later than any instant.
fn possible(layout: &Layout, number: u64) -> u64 {
    let (mut id, mut shift, mut timestamp) = (0, 0, 0);
    for field in layout.fields().iter().rev() {
        let mask = (u64::MAX >> (64 - field.bits)) << shift;
        id |= match field.role {
            Role::Reserved { value } => value << shift,
            _ => number & mask,
        };
        if matches!(field.role, Role::Timestamp { .. }) {
            timestamp = mask;
        }
        shift += field.bits;
    }
    if layout.tick_of(id).is_ok() { id } else { id & !timestamp }
}

thread_local!(static DRAWN: Cell<u64> = const { Cell::new(0) });

/// Each number differs from the last one in most bits.
fn draw() -> u64 {
    DRAWN.set(DRAWN.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
    DRAWN.get()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn make_undoes_numbers(layout in any_layout(), id: u64) {
        let id = possible(&layout, id);
        let numbers: BTreeMap<String, u64> =
            layout.numbers(id).into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
        prop_assert_eq!(layout.make(layout.tick_of(id).unwrap(), &numbers), Ok(id));
        for (name, &number) in &numbers {
            let mut more = numbers.clone();
            more.insert(name.clone(), number | 1 << 63);
            if number >> 63 == 1 {
                continue;
            }
            prop_assert!(layout.make(layout.tick_of(id).unwrap(), &more).is_err());
        }
    }

    #[test]
    fn parse_undoes_encode(layout in any_layout(), id: u64, other: u64) {
        let id = possible(&layout, id);
        let text = layout.encode(id).unwrap();
        prop_assert_eq!(layout.parse(&text), Ok(id));
        // Texts of no fixed length, and those whose digits are not in the order of ASCII.
        let unordered = [TextForm::Decimal, TextForm::Base64url, TextForm::Base64urlReversed];
        let other = possible(&layout, other);
        if !unordered.contains(&layout.text) {
            prop_assert_eq!(text.cmp(&layout.encode(other).unwrap()), id.cmp(&other));
        }
    }

    #[test]
    fn no_text_panics(layout in any_layout(), text in "\\PC{0,30}") {
        if let Ok(id) = layout.parse(&text) {
            prop_assert_eq!(layout.parse(&layout.encode(id).unwrap()), Ok(id));
        }
    }

    #[test]
    fn every_possible_id_can_be_drawn_within_100_columns(layout in any_layout(), id: u64) {
        let id = possible(&layout, id);
        let drawn = layout.explain(id).unwrap();
        prop_assert!(drawn.lines().all(|line| line.len() <= 100), "{}", drawn);
    }

    /// An ID is within the IDs of a span exactly when its tick overlaps the span.
    #[test]
    fn spans_hold_the_ids_whose_ticks_overlap(
        layout in any_layout(),
        id: u64,
        ends in [-3i64..1_000_000, -3i64..1_000_000],
        open: [bool; 2],
        included: bool,
    ) {
        let id = possible(&layout, id);
        let start = layout.start_of(layout.tick_of(id).unwrap());
        let Some(last_tick) = layout.last_ordered_tick() else { return Ok(()) };
        if start > layout.start_of(last_tick) {
            return Ok(());
        }
        let near = |offset: i64, open: bool| (!open).then(|| start.saturating_add((offset - 500_000) / 7));
        let (from, to) = (near(ends[0], open[0]), near(ends[1], open[1]));
        let first = from.map_or(Bound::Unbounded, Bound::Included);
        let last = to.map_or(Bound::Unbounded, if included { Bound::Included } else { Bound::Excluded });
        let found = match layout.ids_during(first, last) {
            Ok(found) => found,
            Err(Error::InstantOutOfRange { .. }) => return Ok(()),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let end = start + layout.tick_length();
        let overlaps = from.is_none_or(|from| from < end)
            && to.is_none_or(|to| start < to || included && start == to)
            && (from.is_none() || to.is_none() || from < to || included && from == to);
        let within = found.is_some_and(|(first, last)| (first..=last).contains(&(id as i64)));
        if from.zip(to).is_none_or(|(from, to)| from < to || included && from == to) {
            prop_assert_eq!(within, overlaps, "{:?} {:?} {:?}", from, to, found);
        }
    }

    #[test]
    fn unpack_undoes_pack(layout in any_layout(), numbers: [u64; 4]) {
        let parts = parts_of(&layout, numbers);
        let id = layout.pack(&parts).unwrap();
        let back = layout.unpack(id).unwrap();
        prop_assert_eq!((back.tick, back.worker, back.sequence), (parts.tick, parts.worker, parts.sequence));
        prop_assert_eq!(layout.pack(&back).unwrap(), id);
        prop_assert_eq!(layout.tick_at(layout.start_of(parts.tick)).unwrap(), parts.tick);
        prop_assert_eq!(layout.tick_at(layout.start_of(parts.tick) + layout.tick_length() - 1).unwrap(), parts.tick);
    }

    #[test]
    fn every_number_unpacks_and_packs_or_is_refused(layout in any_layout(), id: u64) {
        match layout.unpack(id) {
            Ok(parts) => prop_assert_eq!(layout.unpack(layout.pack(&parts).unwrap()), Ok(parts)),
            Err(Error::ImpossibleId { too_wide, field, .. }) => {
                prop_assert!(too_wide || field.is_some() || possible(&layout, id) != id);
            }
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
            None => {
                let refused = matches!(layout.min_at(at), Err(Error::NotTimeOrdered { .. }));
                prop_assert!(refused);
            }
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
            prop_assert!(layout.start_of(tick) <= at && at - layout.start_of(tick) < layout.tick_length());
        }
        let _ = (layout.min_at(at), layout.max_at(at));
    }

    /// Two sessions with adjacent slots and clocks that jump: no ID is made twice, each lies in its session's share, and
    /// a session's ticks never go back.
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
                    Answer::Wait { until } => {
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

    /// IDs made many at a time are the same as those made one by one.
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

    /// Layouts have the same key, or overlap, or never make the same ID in one tick.
    #[test]
    fn no_two_layouts_that_do_not_overlap_make_the_same_id(
        fields in prop::collection::vec((0u8..5, 1u8..3, 0u8..2), 2..5),
        change in (0usize..5, 0u8..5, 0u8..2),
        times in prop::sample::select(vec![(20u8, 20u8), (20, 21)]),
        zero: bool,
    ) {
        // They differ in at most one field below the timestamp.
        let mut others = fields.clone();
        let place = change.0 % fields.len();
        others[place] = (change.1, fields[place].1, change.2);
        let (one, other) = (narrow_layout(times.0, &fields, false), narrow_layout(times.1, &others, zero));
        let [ids, others_ids] = [&one, &other].map(|layout| all_ids_of_tick(layout, 5));
        let is_same_place = ids.iter().any(|id| others_ids.contains(id));
        if one.same_bits(&other) {
            prop_assert_eq!(one.key(), other.key());
            prop_assert_eq!(&ids, &others_ids);
            prop_assert!(!one.overlaps(&other));
        } else {
            prop_assert_ne!(one.key(), other.key());
            prop_assert_eq!(one.overlaps(&other), is_same_place, "{:?} {:?}", one, other);
            prop_assert_eq!(one.overlaps(&other), other.overlaps(&one));
        }
    }

    /// What [`Layout::increases`] promises.
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
        // A rolling sequence begins in the middle of the first step, unless it is the only one.
        let is_rolling = layout.rule == SequenceRule::Rolling && share.steps > 1;
        let skipped = if is_rolling { position % share.size() % share.ids_per_step } else { 0 };
        prop_assert_eq!(ids.len() as u64, share.size() - skipped);
        prop_assert_eq!(generator.issued(), share.size() - skipped);
    }
}
