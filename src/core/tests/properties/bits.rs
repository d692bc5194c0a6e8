//! The bits of IDs: numbers and parts, and which layouts can make the same IDs.

use std::collections::{BTreeMap, HashSet};

use flake_core::{Error, Field, IdSource, Layout, Reversal, Role};
use proptest::prelude::*;

use crate::layouts::{any_layout, parts_of, possible};

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
    Layout::new("narrow", 0, 1_000, fields).unwrap()
}

/// All IDs that the layout can have in a tick.
fn all_ids_of_tick(layout: &Layout, tick: u64) -> HashSet<u64> {
    let shift = layout.fields().iter().rev().take_while(|field| !matches!(field.role, Role::Timestamp { .. }));
    let bits: u32 = shift.map(|field| u32::from(field.bits)).sum();
    (0..1 << bits).map(|low| tick << bits | low).filter(|&id| layout.tick_of(id) == Ok(tick)).collect()
}

proptest! {
    #![proptest_config(crate::config())]

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

    /// Two layouts have the same key, or they overlap, or they never make the same ID in one tick.
    #[test]
    fn no_two_layouts_that_do_not_overlap_make_the_same_id(
        fields in prop::collection::vec((0u8..5, 1u8..3, 0u8..2), 2..5),
        change in (0usize..5, 0u8..5, 0u8..2),
        times in prop::sample::select(vec![(20u8, 20u8), (20, 21)]),
        zero: bool,
    ) {
        // The layouts differ in at most one field below the timestamp.
        let mut others = fields.clone();
        let place = change.0 % fields.len();
        others[place] = (change.1, fields[place].1, change.2);
        let (one, other) = (narrow_layout(times.0, &fields, false), narrow_layout(times.1, &others, zero));
        let [ids, others_ids] = [&one, &other].map(|layout| all_ids_of_tick(layout, 5));
        let is_same_place = ids.iter().any(|id| others_ids.contains(id));
        if one.same_bits(&other) {
            prop_assert_eq!((&one).key(), (&other).key());
            prop_assert_eq!(&ids, &others_ids);
            prop_assert!(!one.overlaps(&other));
        } else {
            prop_assert_ne!((&one).key(), (&other).key());
            prop_assert_eq!(one.overlaps(&other), is_same_place, "{:?} {:?}", one, other);
            prop_assert_eq!(one.overlaps(&other), other.overlaps(&one));
        }
    }
}
