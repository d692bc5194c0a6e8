//! What a server that starts, or is promoted, is above.

use flake_core::Node;
use flake_core::ledger::Ledger;
use flake_core::marks::{KnownMark, Marks};
use flake_core::opening::Opening;
use flake_core::record::{ExitNote, Owner, Record};
use flake_core::timeline::{AHEAD, MARGIN};

const SECOND: i64 = 1_000_000;
const NOW: i64 = 1_780_000_000 * SECOND;
const MEMORY: u32 = 5;

fn node(id: u32, count: u32) -> Node {
    Node::new(id, count).unwrap()
}

fn unknown() -> KnownMark {
    Marks::new(None).of(node(0, 2))
}

/// Node 0 of 2 opens its ledger on the first timeline of the WAL.
fn opening(known: KnownMark) -> Opening {
    Opening { now: NOW, started_at: None, node: node(0, 2), wal_timeline: 1, new_memory: MEMORY + 1, known }
}

/// The file of a node whose last time was granted at an instant.
fn file(node: (u32, u32), granted_at: i64, exit_note: Option<ExitNote>) -> Record {
    let ledger = Ledger::new(granted_at - SECOND).extended(granted_at, granted_at + 1000).unwrap();
    assert_eq!(ledger.granted_until(), granted_at + AHEAD);
    let owner = Owner { node, wal_timeline: 1, memory: MEMORY, of_others: i64::MIN };
    Record::new(1, owner, ledger.timeline(), exit_note)
}

fn floor(opening: &Opening, file: Option<Record>) -> i64 {
    opening.ledger(file, Some("boot")).0.floor()
}

#[test]
fn its_own_file() {
    assert_eq!(floor(&opening(unknown()), Some(file((0, 2), NOW, None))), NOW + AHEAD);
    assert_eq!(floor(&opening(unknown()), Some(file((0, 2), NOW - 60 * SECOND, None))), NOW - 60 * SECOND + AHEAD);
}

/// An old primary under the same number may go on for as long as the mark is ahead.
#[test]
fn a_server_that_takes_over_leaves_the_old_one_time() {
    let old = file((0, 2), NOW - 60 * SECOND, None);
    let listed = KnownMark { own: Some((NOW - 50 * SECOND, MEMORY)), is_listed: true, ..unknown() };
    let promoted = Opening { wal_timeline: 2, ..opening(listed) };
    let others = file((1, 2), NOW - 60 * SECOND, None);
    for (opening, file) in [(promoted, Some(old)), (opening(listed), None), (opening(listed), Some(others))] {
        assert!(floor(&opening, file.clone()) > NOW + MARGIN, "{file:?}");
        assert_eq!(opening.ledger(file, Some("boot")).1.memory, MEMORY + 1);
    }
}

/// A standby stays what it is, whatever timeline it follows.
#[test]
fn a_standby_that_starts_again_continues_from_its_own_file() {
    let standby = Opening { wal_timeline: 0, ..opening(unknown()) };
    assert_eq!(floor(&standby, Some(file((0, 2), NOW - 60 * SECOND, None))), NOW - 60 * SECOND + AHEAD);
}

/// A base backup of a standby that has made IDs may become a primary twice.
#[test]
fn a_copy_of_a_standby_leaves_its_twin_time() {
    let mut copied = file((0, 2), NOW - 60 * SECOND, None);
    copied.owner.wal_timeline = 0;
    assert!(floor(&opening(unknown()), Some(copied.clone())) > NOW + MARGIN);
    assert_eq!(opening(unknown()).ledger(Some(copied), Some("boot")).1.memory, MEMORY + 1);
}

/// Where the nodes were numbered otherwise, any of the workers may have been this node's.
#[test]
fn the_file_of_a_node_under_another_number_of_nodes() {
    let renumbered = file((1, 4), NOW, None);
    assert_eq!(floor(&opening(unknown()), Some(renumbered.clone())), NOW + AHEAD);
    // The server that it was copied from may go on in its memory.
    assert_eq!(opening(unknown()).ledger(Some(renumbered), Some("boot")).1.memory, MEMORY + 1);
    assert!(floor(&opening(unknown()), Some(file((1, 2), NOW, None))) <= NOW + 1);
}

#[test]
fn what_the_page_says() {
    let old = file((0, 2), NOW - 60 * SECOND, None);
    let above = NOW + 30 * SECOND;
    let of_another = KnownMark { own: Some((above, MEMORY + 7)), is_listed: true, ..unknown() };
    let of_other_count = KnownMark { inherited: above, is_listed: true, ..unknown() };
    for known in [of_another, of_other_count] {
        assert_eq!(floor(&opening(known), Some(old.clone())), above);
        assert_eq!(floor(&opening(known), None), above);
    }
    // Its own mark says nothing new, unless its file was put back to an earlier state.
    let own = |mark| KnownMark { own: Some((mark, MEMORY)), is_listed: true, ..unknown() };
    assert_eq!(floor(&opening(own(NOW - 60 * SECOND + AHEAD + MARGIN)), Some(old.clone())), NOW - 60 * SECOND + AHEAD);
    assert_eq!(floor(&opening(own(above)), Some(old)), above);
}

#[test]
fn an_exit_note_counts_while_the_operating_system_runs() {
    let exit_note = ExitNote { boot_id: "boot".to_owned(), free_from: NOW + 1 };
    let file = file((0, 2), NOW, Some(exit_note.clone()));
    let opened = |known, boot_id| {
        let (ledger, _, exit_note) = opening(known).ledger(Some(file.clone()), boot_id);
        (ledger.floor(), exit_note)
    };
    assert_eq!(opened(unknown(), Some("boot")), (NOW + 1, Some(exit_note)));
    for other in [Some("another boot"), None] {
        assert_eq!(opened(unknown(), other), (NOW + AHEAD, None));
    }
    // It would lower the floor again at the next start.
    let raised = KnownMark { own: Some((NOW + 30 * SECOND, MEMORY + 7)), is_listed: true, ..unknown() };
    assert_eq!(opened(raised, Some("boot")), (NOW + 30 * SECOND, None));
}
