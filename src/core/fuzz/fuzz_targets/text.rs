//! Whatever is given as the text of an ID: no panic; and what is an ID is one again.
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
