//! Layouts that are written as a text.

use flake_core::{Field, Layout, Reversal, Role};

/// A layout whose epoch is 1970, from its fields in order: `t40` for a timestamp of 40 bits, `w` for a worker, `v` for a worker that is
/// finer, `s` for a sequence, `x` for random bits, and `r` for reserved bits with the value 1. Fields without bits are left out.
pub fn layout(tick: i64, fields: &str) -> Layout {
    let field = |text: &str| {
        let (kind, bits) = text.split_at(1);
        let role = match kind {
            "t" => Role::Timestamp { reversed: Reversal::Never },
            "w" => Role::Worker { rank: 0 },
            "v" => Role::Worker { rank: 1 },
            "s" => Role::Sequence,
            "x" => Role::Random,
            "r" => Role::Reserved { value: 1 },
            _ => panic!("there is no field {text}"),
        };
        Field { name: kind.to_owned().into(), bits: bits.parse().expect(text), role }
    };
    let fields = fields.split_whitespace().map(field).filter(|field| field.bits > 0).collect();
    Layout::new("made", 0, tick, fields).unwrap()
}
