//! Generators of two sessions, for layouts from outside.

use std::collections::HashSet;

use flake_core::{Answer, Generator, Layout, Node, Share, Slot, Start};

use super::choices::Choices;

/// Two sessions with different shares make no ID twice, whatever the clock does, and whichever of two layouts with one generator
/// they use.
pub fn never_repeat(layout: &Layout, other: &Layout, choices: &mut Choices<'_>) {
    let (nodes, slots) = (1 + u32::from(choices.byte() % 4), 1 + u32::from(choices.byte()));
    let mut place = || (u32::from(choices.byte()) % nodes, u32::from(choices.byte()) % slots);
    let places = [place(), place()];
    if places[0] == places[1] {
        return;
    }
    let shares =
        places.map(|(node, slot)| Share::new(layout, Node::new(node, nodes).unwrap(), Slot::new(slot, slots).unwrap()));
    let [Ok(one), Ok(two)] = shares else { return };
    let mut now = layout.start_of(choices.number() % (layout.last_tick() / 2 + 1));
    let mut sessions = [one, two].map(|share| {
        let above = Start { free_from: now + 1, resumed: None };
        (share, Generator::start(layout, &share, above, i64::MIN, choices.number()))
    });
    let mut made = HashSet::new();
    for _ in 0..32 {
        now = choices.instant(&[now, now.saturating_add(layout.tick_length())]);
        let (share, generator) = &mut sessions[usize::from(choices.flag())];
        if choices.flag() && layout.same_bits(other) {
            generator.adopt(other);
        }
        for _ in 0..choices.byte() % 8 {
            let Answer::Issue(id) = generator.next(now, || 0) else { break };
            let parts = layout.unpack(id).unwrap();
            let start = layout.start_of(parts.tick);
            assert!(made.insert(id), "{id} twice");
            assert!(start <= now && now - start < layout.tick_length());
            assert!(parts.worker.wrapping_sub(share.workers.first) < share.workers.count);
            assert!(parts.sequence.wrapping_sub(share.sequences.first) < share.sequences.count);
        }
        if choices.is_over() {
            return;
        }
    }
}
