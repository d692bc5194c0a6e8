//! Generators of two sessions, for layouts from outside.

use std::collections::HashSet;

use flake_core::{Answer, Generator, Lanes, Layout, Node, OwnCursors, PARTS, Part, TURNS};

use super::choices::Choices;

/// Two sessions of a part or of two, with equal or different lanes, make no ID twice, whatever the clock does, and whichever of two
/// layouts with the same bits they use.
pub fn never_repeat(layout: &Layout, other: &Layout, choices: &mut Choices<'_>) {
    let nodes = 1 + u32::from(choices.byte() % 4);
    let places = [0, 1].map(|_| (u32::from(choices.byte()), u64::from(choices.byte())));
    // All of them are divided into parts, or none.
    let are_whole = choices.flag();
    let parts = places.map(|(number, _)| {
        let (node, part) = (Node::new(number % nodes, nodes).unwrap(), number / nodes % PARTS);
        if are_whole { Part::whole(node) } else { Part::in_turn(node, part % TURNS, part / TURNS) }
    });
    let lanes = parts.map(|part| Lanes::new(layout, part));
    let [Ok(one), Ok(two)] = lanes else { return };
    // The sessions of a part share its cursors.
    let cursors = [one, two].map(|lanes| OwnCursors::new(&lanes));
    let cursors_of = [0, usize::from(parts[0] != parts[1])];
    let mut now = layout.start_of(choices.number() % (layout.last_tick() / 2 + 1));
    let above = now + 1;
    let mut sessions = [(one, places[0].1), (two, places[1].1)]
        .map(|(lanes, lane)| Generator::start(layout, &lanes, lane % lanes.count, above));
    let mut made = HashSet::new();
    for _ in 0..32 {
        now = choices.instant(&[now, now.saturating_add(layout.tick_length())]);
        let which = usize::from(choices.flag());
        let generator = &mut sessions[which];
        if choices.flag() && layout.same_bits(other) {
            generator.adopt(other);
        }
        let Lanes { workers, sequences, .. } = *generator.lanes();
        for _ in 0..choices.byte() % 8 {
            let Answer::Issue(id) = generator.next(now, &cursors[cursors_of[which]], || 0) else { break };
            // The last tick of the other layout may be later.
            let parts = generator.source.unpack(id).unwrap();
            let start = layout.start_of(parts.tick);
            assert!(made.insert(id), "{id} twice");
            assert!(start <= now && now - start < layout.tick_length());
            assert!(parts.worker.wrapping_sub(workers.first) < workers.count);
            assert!(parts.sequence.wrapping_sub(sequences.first) < sequences.count);
        }
        if choices.is_over() {
            return;
        }
    }
}
