//! A file and a page that 0.9.0 has written, and what is read of them.

use flake_core::ledger::block::Unreadable;
use flake_core::ledger::host::{FILE as SIZE, Fault};
use flake_core::ledger::marks::{Bound, MARGIN, Writer};
use flake_core::ledger::protocol;
use flake_core::ledger::record::newest;
use flake_core::ledger::used::Used;
use flake_core::{Node, ledger::marks::Marks};

mod alone;
use alone::{Alone, SECOND, Trouble};

/// Written by 0.9.0: its last record has an exit note, and two stretches of used time, of node 1 of 4.
const FILE: &[u8] = include_bytes!("data/flake.mark-0.9.0");
/// Node 1 of 4, and node 0 of 2, which binds; and what a sequence said before.
const PAGE: &[u8] = include_bytes!("data/page-0.9.0");
const BEGAN: i64 = 1_780_000_000 * SECOND;
const UNTIL: i64 = BEGAN + 3605 * SECOND;

#[test]
fn its_file_is_everything_before_the_end() {
    let ((marks, file), state) = newest(FILE).unwrap();
    let by = Writer { node: (1, 4), incarnation: 0x1234_5678, start: 0 };
    assert_eq!(marks.listed().iter().map(|mark| (mark.by, mark.used)).collect::<Vec<_>>(), [(by, Used::before(UNTIL))]);
    assert_eq!((file.number, file.node, file.wal_timeline, file.exit_note), (42, (1, 4), 3, None));
    let others = Writer { node: (0, 4), incarnation: 1, start: 2 };
    assert_eq!(marks.concern(others, &(0, Used::NONE)).used.until(), BEGAN + 9 * SECOND);
    assert!(state.is_old && state.number == 42);
}

#[test]
fn an_older_half_counts_where_the_newer_one_is_damaged() {
    let mut torn = FILE.to_vec();
    torn[4096 + 100] ^= 1;
    assert_eq!(newest(&torn).unwrap().0.1.number, 41);
    torn[100] ^= 1;
    assert_eq!(newest(&torn).unwrap_err(), Fault::File(Unreadable::Damaged));
}

#[test]
fn its_page_is_read_without_its_margins() {
    let mut alone = Alone::new();
    alone.page.bytes = Some(PAGE.to_vec());
    alone.node = Node::new(0, 2).unwrap();
    protocol::record_mark(&mut alone).unwrap();
    let (marks, _) = Marks::decode(alone.page.bytes.as_ref().unwrap()).unwrap();
    let other = marks.of((1, 4)).unwrap();
    assert_eq!((other.by.incarnation, other.used), (0x1234_5678, Used::before(BEGAN + 5 * SECOND - MARGIN)));
    assert!(marks.of((0, 2)).unwrap().used.includes(i64::MIN, BEGAN + 7 * SECOND), "as the margin is added again");
    assert_eq!(marks.bound, Bound { recalls: 0, instant: BEGAN + 6 * SECOND, incarnation: 77 });
    assert_eq!(
        marks.concern(Writer { node: (0, 9), incarnation: 1, start: 1 }, &(0, Used::NONE)).used.until(),
        BEGAN + 9 * SECOND
    );
}

#[test]
fn what_its_page_says_of_nodes_that_it_does_not_list() {
    let mut alone = Alone::new();
    let mut page = PAGE.to_vec();
    page[8..16].copy_from_slice(&(BEGAN + 8 * SECOND).to_le_bytes());
    alone.page.bytes = Some(page);
    protocol::record_mark(&mut alone).unwrap();
    let (marks, _) = Marks::decode(alone.page.bytes.as_ref().unwrap()).unwrap();
    let me = Writer { node: (1, 2), incarnation: 1, start: 1 };
    assert_eq!(marks.concern(me, &(0, Used::NONE)).used.until(), BEGAN + 8 * SECOND);
}

#[test]
fn something_else_is_no_page() {
    for bytes in [&PAGE[..PAGE.len() - 1], &[0; 8144]] {
        let mut alone = Alone::new();
        alone.page.bytes = Some(bytes.to_vec());
        let fault = protocol::record_mark(&mut alone).unwrap_err();
        assert_eq!(fault, Trouble::Fault(Fault::Page(Unreadable::Damaged)));
    }
}

/// It is taken over, and then 0.9.0 cannot read it any more, in neither half.
#[test]
fn a_file_of_it_is_replaced_before_time_is_used() {
    let mut alone = Alone::new();
    *alone.file.get_mut() = Some(FILE.to_vec());
    alone.node = Node::new(1, 4).unwrap();
    alone.wal_timeline = 3;
    alone.at(UNTIL + SECOND);
    protocol::begin(&mut alone, 1).unwrap();
    protocol::grant(&mut alone, UNTIL + SECOND, UNTIL + SECOND + 1, false).unwrap();
    let file = alone.file.borrow().clone().unwrap();
    assert_eq!(alone.writes.borrow()[0], None, "all of it at once");
    assert_eq!(file.len(), SIZE);
    let ((marks, part), _) = newest(&file).unwrap();
    assert!(part.number > 42);
    let mark = marks.of((1, 4)).unwrap();
    assert!(mark.by.incarnation == 0x1234_5678 && mark.used.includes(i64::MIN, UNTIL));
}
