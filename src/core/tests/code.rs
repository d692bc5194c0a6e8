//! The codes of layouts: what sequences were adopted with stays the same for ever, and no code is taken for a key.

use std::collections::BTreeSet;

use flake_core::{BUILTIN, Definition, code_of_start, sequence_code};
use proptest::prelude::*;

#[test]
fn codes_never_change() {
    assert_eq!(sequence_code("twitter"), 6_532_401_337_222_670);
    assert_eq!(sequence_code("si"), 7_171_438_647_826_332);
}

#[test]
fn built_in_layouts_have_different_codes() {
    let codes: BTreeSet<_> = BUILTIN.iter().map(|layout| sequence_code(layout.name())).collect();
    assert_eq!(codes.len(), BUILTIN.len());
}

#[test]
fn other_starts_are_not_codes() {
    for start in [1, 0, -1, 1 - (1 << 52), -(1 << 53), i64::MIN, i64::MAX] {
        assert_eq!(code_of_start(start), None, "{start}");
    }
    assert_eq!(code_of_start(-(1 << 52)), Some(1 << 52));
    assert_eq!(code_of_start(1 - (1 << 53)), Some((1 << 53) - 1));
}

proptest! {
    #[test]
    fn the_start_of_an_adopted_sequence_is_its_code(name in "[a-z][a-z0-9_]{0,40}") {
        let code = sequence_code(&name);
        prop_assert_eq!(code_of_start(-code), Some(code));
        // The number below it, the least of the range, is exact in a double too.
        prop_assert_eq!((-code - 1) as f64 as i64, -code - 1);
    }
}

/// A program that counts in blocks uses the numbers on one side of an ID.
#[test]
fn a_last_field_keeps_a_block_of_integers_free() {
    let block = |field: &str| {
        let json = format!(
            r#"{{"like": "si", "fields": [{{"name": "t", "bits": 40, "role": "timestamp"}},
                {{"name": "w", "bits": 4, "role": "worker"}}, {field}]}}"#
        );
        Definition::from_json("x", &json).unwrap().layout("x").unwrap().block()
    };
    assert_eq!(block(r#"{"name": "b", "bits": 7, "role": "reserved", "value": 64}"#), 64);
    assert_eq!(block(r#"{"name": "b", "bits": 1, "role": "reserved", "value": 1}"#), 1);
    for value in [0, 1, 32, 63, 65, 127] {
        assert_eq!(block(&format!(r#"{{"name": "b", "bits": 7, "role": "reserved", "value": {value}}}"#)), 1);
    }
    assert_eq!(block(r#"{"name": "s", "bits": 7, "role": "sequence"}"#), 1);
    assert!(BUILTIN.iter().all(|layout| layout.block() == 1));
}
