//! Random layouts and their IDs.

use std::mem::discriminant;

use flake_core::{BUILTIN, Field, Layout, Parts, Reversal, Role, TextForm};
use proptest::prelude::*;

/// 4714-11-24 BC: the first instant of a timestamptz.
const FIRST: i64 = -210_866_803_200_000_000;

/// Layouts with a timestamp, up to four worker fields, and other fields, in any order.
pub fn any_layout() -> impl Strategy<Value = Layout> {
    let custom = (
        prop::collection::vec((0u8..6, 1u8..7, 0u8..3), 0..6),
        prop_oneof![20u8..41, 41u8..64],
        any::<bool>(),
        0usize..6,
        prop::sample::select(vec![1i64, 10, 1_000, 4_000, 10_000, 1_000_000]),
        prop::sample::select(TextForm::ALL.to_vec()),
        prop::sample::select(vec![1_000_000_000_000_000, 0, FIRST]),
    )
        .prop_map(|(rest, time_bits, is_reversed, place, tick, text, epoch)| {
            let mut fields: Vec<Field> = Vec::new();
            for (number, (role, bits, rank)) in rest.into_iter().enumerate() {
                let count =
                    |role| fields.iter().filter(|field| discriminant(&field.role) == discriminant(&role)).count();
                let role = match role {
                    0 if count(Role::Sequence) == 0 => Role::Sequence,
                    1 => Role::Random,
                    2 => Role::Reserved { value: u64::from(rank) & 1 },
                    3 if count(Role::Tag) == 0 => Role::Tag,
                    _ if count(Role::Worker { rank }) < 4 => Role::Worker { rank },
                    _ => Role::Random,
                };
                fields.push(Field { name: format!("f{number}").into(), bits, role });
            }
            let role = Role::Timestamp { reversed: if is_reversed { Reversal::Always } else { Reversal::Never } };
            fields.insert(place.min(fields.len()), Field { name: "timestamp".into(), bits: time_bits, role });
            while fields.iter().map(|field| u32::from(field.bits)).sum::<u32>() > 64 {
                fields.pop_if(|field| !matches!(field.role, Role::Timestamp { .. })).or_else(|| Some(fields.remove(0)));
            }
            let mut layout = Layout::new("custom", epoch, tick, fields).unwrap();
            layout.text = text;
            layout
        });
    prop_oneof![(0..BUILTIN.len()).prop_map(|i| BUILTIN[i].clone()), custom]
}

pub fn parts_of(layout: &Layout, [tick, worker, sequence, random]: [u64; 4]) -> Parts {
    Parts {
        tick: tick % (layout.last_tick() + 1),
        worker: worker % layout.workers(),
        sequence: sequence % layout.sequences(),
        random,
    }
}

/// The number with the layout's reserved bits, and with tick 0 if its tick is later than any instant.
pub fn possible(layout: &Layout, number: u64) -> u64 {
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

/// How many bits are below the timestamp.
pub fn below_time(layout: &Layout) -> u32 {
    let fields = layout.fields().iter().rev();
    fields.take_while(|field| !matches!(field.role, Role::Timestamp { .. })).map(|field| u32::from(field.bits)).sum()
}
