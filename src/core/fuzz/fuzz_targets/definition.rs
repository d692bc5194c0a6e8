//! No definition makes flake panic; one that makes a layout makes the same layout again, and that makes and reads IDs.
#![no_main]

use std::ops::Bound;

use flake_core::{Answer, Definition, Generator, Node, Share, Slot};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &str| {
    let Ok(definition) = Definition::from_json("fuzz", json) else { return };
    let Ok(layout) = definition.check_new("fuzz", i64::MAX) else { return };
    let again = serde_json::to_string(&definition).unwrap();
    assert_eq!(Definition::from_json("fuzz", &again).unwrap().layout("fuzz").unwrap(), layout);

    for at in [layout.epoch(), layout.start_of(layout.last_tick()), 0, i64::MIN, i64::MAX] {
        let _ = (layout.min_at(at), layout.max_at(at), layout.ids_during(Bound::Included(at), Bound::Unbounded));
    }
    for id in [0, u64::MAX, 1 << 63, 0x5555_5555_5555_5555] {
        if layout.tick_of(id).is_ok() {
            assert_eq!(layout.parse(&layout.encode(id).unwrap()), Ok(id));
            layout.explain(id).unwrap();
        }
    }
    let (node, slot) = (Node::new(0, 1).unwrap(), Slot::new(3, 122).unwrap());
    let Ok(share) = Share::new(&layout, node, slot) else { return };
    let now = layout.start_of(layout.last_tick() / 2);
    let Ok(mut generator) = Generator::starting_above(&layout, &share, now, 7) else { return };
    if let Some(next) = now.checked_add(layout.tick_length())
        && let Answer::Issue(id) = generator.next(next, || u64::MAX)
    {
        assert!(layout.unpack(id).is_ok());
    }
});
