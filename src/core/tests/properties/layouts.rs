//! Random layouts and their IDs.

use flake_core::{BUILTIN, Definition, Field, FieldDefinition, Layout, Parts, Reversal, Role, TextForm};
use proptest::prelude::*;

/// Layouts with a timestamp, up to four worker fields, and other fields, in any order.
pub fn any_layout() -> impl Strategy<Value = Layout> {
    let custom = (
        prop::collection::vec((0u8..6, 1u8..7, 0u8..3), 0..6),
        prop_oneof![20u8..41, 41u8..64],
        any::<bool>(),
        0usize..6,
        prop::sample::select(vec![1i64, 10, 1_000, 4_000, 10_000, 1_000_000]),
        prop::sample::select(TextForm::ALL.to_vec()),
        prop::sample::select(vec!["2001-09-09T01:46:40Z", "1970-01-01T00:00:00Z", "-004713-11-24T00:00:00Z"]),
    )
        .prop_map(|(rest, time_bits, reversed, place, tick, text, epoch)| {
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
            // Built from JSON, like the layouts of users.
            let definition = Definition {
                like: None,
                epoch: Some(epoch.to_owned()),
                tick: Some(format!("{tick}us")),
                fields: Some(fields.iter().map(FieldDefinition::from).collect()),
                text: Some(text),
            };
            let json = serde_json::to_string(&definition).unwrap();
            let layout = Definition::from_json("custom", &json).unwrap().check_new("custom", i64::MAX).unwrap();
            assert_eq!(layout.fields(), fields);
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
