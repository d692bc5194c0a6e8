//! The page of marks: whatever bytes it has, a valid one only ever rises.
#![allow(unsafe_code, reason = "the page is read as it is on disk")]

use flake_core::Node;
use flake_core::marks::Marks;
use flake_core::opening::Opening;

use super::choices::Choices;

/// The page begins with these bytes after its magic number; the last of them are decisions.
pub fn page(data: &[u8]) {
    let (page, decisions) = data.split_at(data.len().saturating_sub(64));
    let mut marks = read(page);
    if !marks.is_valid() {
        return;
    }
    let mut choices = Choices(decisions);
    while !choices.is_over() {
        let count = choices.pick(&[1, 2, 32, 1024, u32::MAX]);
        let node = Node::new(u32::from(choices.byte()) % count, count).unwrap();
        let (instant, memory) = (choices.instant(&[0]), u32::from(choices.byte()));
        let (known, greatest, binding) = (marks.of(node), marks.greatest(), marks.binding());
        let opening =
            Opening { now: choices.instant(&[0]), started_at: None, node, wal_timeline: 1, new_memory: 7, known };
        let (ledger, owner, _) = opening.ledger(None, None);
        let own = known.own.filter(|(_, memory)| *memory != owner.memory).map_or(i64::MIN, |(instant, _)| instant);
        assert!(ledger.floor() >= own.max(known.inherited));
        marks.raise(node, instant, memory);
        if choices.flag() {
            marks.bind(instant, memory);
        }
        assert!(marks.is_valid());
        assert!(marks.own(node) >= Some(instant) && marks.own(node) >= known.own.map(|(instant, _)| instant));
        assert!(marks.greatest() >= greatest.max(instant));
        assert!(marks.binding() >= binding);
        assert!(marks.of(node).is_listed);
    }
}

/// Marks whose memory begins with the right number and these bytes.
fn read(bytes: &[u8]) -> Marks {
    let mut marks = Marks::new(None);
    let length = bytes.len().min(size_of::<Marks>() - 4);
    // SAFETY: marks consist of plain numbers and have no padding, so all bytes are marks, valid or not.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut marks).cast::<u8>().add(4), length) };
    marks
}
