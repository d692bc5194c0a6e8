//! The bits of IDs: numbers and parts, and which layouts can make the same IDs.

use std::collections::BTreeMap;

use flake_core::Error;
use proptest::prelude::*;

use crate::layouts::{any_layout, parts_of, possible};

proptest! {
    #![proptest_config(crate::config())]

    #[test]
    fn numbers_too_large_are_refused(layout in any_layout(), id: u64) {
        let id = possible(&layout, id);
        let numbers: BTreeMap<String, u64> =
            layout.numbers(id).into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
        for (name, &number) in numbers.iter().filter(|(_, number)| *number >> 63 == 0) {
            let mut more = numbers.clone();
            more.insert(name.clone(), number | 1 << 63);
            prop_assert!(layout.make(layout.tick_of(id).unwrap(), &more).is_err());
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
}
