//! The facts with which the ledger of node 0 of 2 begins.

use flake_core::ledger::block::FilePart;
use flake_core::ledger::marks::{Author, Mark, Marks};
use flake_core::ledger::note::ExitNote;
use flake_core::ledger::state::Facts;
use flake_core::ledger::used::Used;
use flake_core::{Node, Turn, Turns};

pub const SECOND: i64 = 1_000_000;
/// As the other tests have it.
pub const NOON: i64 = 1_780_000_000 / 3600 * 3600 * SECOND;
/// The part of node 0 of 2 on timeline 1, whose turn is 1.
pub const PART: (u32, u32) = (1, 16);
pub const ME: Author = Author { part: PART, incarnation: 5, start: 7 };

pub fn node(id: u32, count: u32) -> Node {
    Node::new(id, count).unwrap()
}

pub fn facts(file: Option<&(Marks, FilePart)>) -> Facts<'_> {
    Facts { now: NOON, started_at: None, node: node(0, 2), turns: on(1, 1), boot: Some(1), chance: (50, 60), file }
}

/// The record of a server on a timeline with a turn.
pub fn on(timeline: u32, turn: u32) -> Turns {
    Turns { before: None, last: Some(Turn { timeline, turn }) }
}

pub fn of(by: Author, used: Used) -> Marks {
    let mut marks = Marks::default();
    marks.set(Mark { by, used });
    marks
}

pub fn file(mut marks: Marks, exit_note: Option<ExitNote>) -> (Marks, FilePart) {
    marks.turns = on(1, 1);
    (marks, FilePart { number: 1, part: PART, exit_note })
}
