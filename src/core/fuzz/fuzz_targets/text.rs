//! No text makes flake panic; one that is an ID is written as a text that reads as the same ID.
#![no_main]

use flake_core::BUILTIN;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for layout in BUILTIN {
        if let Ok(id) = layout.parse(text) {
            assert_eq!(layout.parse(&layout.encode(id).unwrap()), Ok(id));
            layout.explain(id).unwrap();
        }
    }
});
