//! The file of a server: a record that is on disk is not overwritten before the next one is, and a fault is not overwritten at all.

use flake_core::ledger::block::{SIZE, Unreadable};
use flake_core::ledger::bound::Bound;
use flake_core::ledger::host::{FILE, Fault, HALF, Host, Server};
use flake_core::ledger::marks::{Author, Mark, Marks};
use flake_core::ledger::note::ExitNote;
use flake_core::ledger::part_time::AHEAD;
use flake_core::ledger::protocol::{self, Grant};
use flake_core::ledger::record::{newest, note, store};
use flake_core::ledger::used::Used;
use proptest::prelude::*;

mod alone;
use alone::{Alone, HOUR, NOON, SECOND, Trouble};

/// The part of a server on its first timeline.
const PART: (u32, u32) = (1, 16);

/// A server that has written its file.
fn alone() -> Alone {
    let mut alone = Alone::new();
    protocol::record_mark(&mut alone).unwrap();
    grant(&mut alone, 0);
    alone
}

fn grant(alone: &mut Alone, after: i64) {
    let now = NOON + after * SECOND;
    alone.at(now);
    assert!(matches!(protocol::grant(alone, now, now + 1, false), Ok(Grant::Window(..))));
}

fn write(alone: &mut Alone) {
    let ledger = alone.lock(|state| state.ledger).unwrap();
    store(&alone.writer(), &ledger, &Marks::default()).unwrap();
}

fn noted(alone: &Alone) -> Option<ExitNote> {
    newest(alone.file.borrow().as_ref().unwrap()).unwrap().0.1.exit_note
}

fn number(alone: &Alone) -> u64 {
    newest(alone.file.borrow().as_ref().unwrap()).unwrap().0.1.number
}

/// The half that was written last stays until the other half is on disk.
#[test]
fn halves_are_written_in_turn() {
    let mut alone = alone();
    alone.writes.borrow_mut().clear();
    for _ in 0..4 {
        write(&mut alone);
    }
    let halves: Vec<usize> = alone.writes.borrow().iter().map(|write| write.unwrap()).collect();
    let first = halves[0];
    assert_eq!(halves, [first, 1 - first, first, 1 - first]);
}

const LEFT: ExitNote = ExitNote { boot: 1, free_from: NOON, until: NOON + SECOND };

/// A note belongs to one record of one file, until it is withdrawn.
#[test]
fn a_note_belongs_to_a_record() {
    let mut alone = alone();
    assert_eq!(noted(&alone), None);
    note(&alone.writer(), Some(LEFT)).unwrap();
    assert_eq!(noted(&alone), Some(LEFT));
    let with_note = alone.file.borrow().clone().unwrap();
    note(&alone.writer(), None).unwrap();
    assert_eq!(noted(&alone), None);
    note(&alone.writer(), Some(LEFT)).unwrap();
    write(&mut alone);
    assert_eq!(noted(&alone), None);
    alone.file.borrow_mut().as_mut().unwrap()[2 * HALF..].copy_from_slice(&with_note[2 * HALF..]);
    assert_eq!(noted(&alone), None);
    for at in 2 * HALF..FILE {
        let mut damaged = with_note.clone();
        damaged[at] ^= 1;
        assert_eq!(newest(&damaged).unwrap().0.1.exit_note, None, "byte {at}");
    }
}

/// A disk that reports a failed write may have written the note all the same.
#[test]
fn a_note_that_could_not_be_written_is_withdrawn() {
    let mut alone = alone();
    alone.disk_fails.set(true);
    assert_eq!(note(&alone.writer(), Some(LEFT)), Err(Trouble::Disk));
    assert_eq!(noted(&alone), Some(LEFT));
    alone.disk_fails.set(false);
    note(&alone.writer(), None).unwrap();
    assert_eq!(noted(&alone), None);
}

/// The note's time was given back already, and the first record contains all used time.
#[test]
fn a_note_of_an_earlier_start_stays_until_the_first_record() {
    let mut alone = alone();
    note(&alone.writer(), Some(LEFT)).unwrap();
    let mut alone = alone.restarted();
    protocol::join(&mut alone).unwrap();
    assert_eq!(noted(&alone), Some(LEFT));
    grant(&mut alone, 10);
    assert_eq!(noted(&alone), None);
}

/// After a start, it is unknown which half is on disk.
#[test]
fn the_first_record_of_a_start_replaces_the_file() {
    let mut alone = alone().restarted();
    let last = number(&alone);
    grant(&mut alone, 10);
    assert_eq!(*alone.writes.borrow(), [None]);
    assert!(number(&alone) > last, "the number of the record must increase");
    grant(&mut alone, 20);
    assert!(alone.writes.borrow()[1].is_some(), "the second record must replace a half only");
}

#[test]
fn a_file_that_is_deleted_is_written_again() {
    let mut alone = alone();
    *alone.file.get_mut() = None;
    grant(&mut alone, 10);
    let ledger = alone.lock(|state| state.ledger).unwrap();
    let file = newest(alone.file.borrow().as_ref().unwrap()).unwrap().0.0;
    assert!(ledger.is_in(&file), "the new file must contain the mark");
}

#[test]
fn a_fault_raises_an_error_and_is_left_alone() {
    let whole = alone().file.into_inner().unwrap();
    let mut newer = whole.clone();
    (newer[4], newer[6]) = (9, 9);
    for (bytes, fault) in [
        (vec![], Unreadable::Damaged),
        (whole[..HALF].to_vec(), Unreadable::Damaged),
        (whole[..HALF + 512].to_vec(), Unreadable::Damaged),
        (whole[..FILE - 1].to_vec(), Unreadable::Damaged),
        (vec![0; FILE], Unreadable::Damaged),
        (newer, Unreadable::Newer(9)),
    ] {
        let mut alone = Alone::new();
        *alone.file.get_mut() = Some(bytes.clone());
        let found = protocol::record_mark(&mut alone).unwrap_err();
        assert_eq!(found, Trouble::Fault(Fault::File(fault)));
        assert_eq!(*alone.file.borrow(), Some(bytes));
    }
    let page = alone().page.bytes.unwrap();
    let mut newer = page.clone();
    (newer[4], newer[6]) = (9, 9);
    let checksum = twox_hash::XxHash3_64::oneshot(&newer[16..]);
    newer[8..16].copy_from_slice(&checksum.to_le_bytes());
    for (bytes, fault) in [(vec![0; page.len()], Unreadable::Damaged), (newer, Unreadable::Newer(9))] {
        let mut alone = Alone::new();
        alone.page.bytes = Some(bytes.clone());
        let found = protocol::record_mark(&mut alone).unwrap_err();
        assert_eq!(found, Trouble::Fault(Fault::Page(fault)));
        assert_eq!(alone.page.bytes, Some(bytes));
    }
}

/// A session that reads a page of another incarnation has it in the file before it does anything else.
#[test]
fn the_content_of_a_page_is_in_the_file_before_it_counts() {
    let mut alone = alone();
    let by = Author { part: PART, incarnation: 99, start: 9 };
    let mut marks = Marks::default();
    marks.set(Mark { by, used: Used::before(NOON + HOUR) });
    alone.page.bytes = Some(marks.encode(None));
    let before = alone.writes.borrow().len();
    protocol::begin(&mut alone, false).unwrap();
    assert!(alone.writes.borrow().len() > before, "{:?}", alone.writes);
    let file = newest(alone.file.borrow().as_ref().unwrap()).unwrap().0.0;
    assert_eq!(file.of(PART).unwrap().used, Used::before(NOON + HOUR), "without a margin");
}

/// The page may be lost with the extension or with its database.
#[test]
fn the_file_keeps_the_marks_of_other_parts_from_the_page() {
    // Other turns of the node, and another node.
    for part in [2, 3, 9].map(|part| (part, 16)) {
        let mut alone = alone();
        let by = Author { part, incarnation: 99, start: 9 };
        let mut marks = Marks::decode(alone.page.bytes.as_ref().unwrap()).unwrap().0;
        marks.set(Mark { by, used: Used::before(NOON + HOUR) });
        alone.page.bytes = Some(marks.encode(None));
        grant(&mut alone, 10);
        let file = newest(alone.file.borrow().as_ref().unwrap()).unwrap().0.0;
        assert_eq!(file.of(part), Some(&Mark { by, used: Used::before(NOON + HOUR) }));
    }
}

/// This holds too while no time can be granted, because a clock was ahead.
#[test]
fn a_horizon_is_announced_in_time_that_is_on_disk() {
    let mut alone = alone();
    alone.at(NOON + 10 * SECOND);
    assert_eq!(protocol::bind(&mut alone), Ok(NOON + 10 * SECOND));
    let file = newest(alone.file.borrow().as_ref().unwrap()).unwrap().0.0;
    assert!(file.of(PART).unwrap().used.includes(NOON + 10 * SECOND, NOON + 11 * SECOND));
    assert!(file.bound.instant > NOON + 10 * SECOND, "the bound must be ahead of the horizon");

    let mut new = Alone::new();
    let mut marks = Marks::default();
    let by = Author { part: PART, incarnation: 99, start: 9 };
    marks.set(Mark { by, used: Used::before(NOON + HOUR) });
    new.page.bytes = Some(marks.encode(None));
    assert_eq!(protocol::bind(&mut new), Ok(NOON));
    let bound = |bytes: &[u8]| Marks::decode(bytes).unwrap().0.bound.instant;
    assert_eq!(bound(new.page.bytes.as_ref().unwrap()), NOON + AHEAD);
    assert_eq!(newest(new.file.borrow().as_ref().unwrap()).unwrap().0.0.bound.instant, NOON + AHEAD);
}

/// A clock that was ahead and accepted is ahead again. Once it is right, IDs return into the gap, also after a crash.
#[test]
fn a_horizon_is_not_announced_above_a_gap_that_ids_can_return_into() {
    let mut alone = alone();
    grant(&mut alone, 3600);
    alone.at(NOON + 60 * SECOND);
    protocol::accept(&mut alone).unwrap();
    alone.at(NOON + HOUR + SECOND);
    let horizon = protocol::bind(&mut alone).unwrap();
    assert_eq!(horizon, NOON + 60 * SECOND + AHEAD);
    let mut alone = alone.restarted();
    alone.at(horizon);
    protocol::begin(&mut alone, false).unwrap();
    let ledger = alone.lock(|state| state.ledger).unwrap();
    assert!(ledger.time.is_open_at(horizon), "IDs return into the gap: {:?}", ledger.time);
}

/// pg_upgrade keeps nothing else of flake_mark.
#[test]
fn the_last_value_is_not_below_horizons() {
    let mut alone = Alone::new();
    let mut marks = Marks::default();
    marks.bound = Bound { recalls: 0, instant: NOON + HOUR, incarnation: 99 };
    alone.page.bytes = Some(marks.encode(None));
    protocol::grant(&mut alone, NOON, NOON + 1, false).unwrap();
    assert_eq!(alone.page.last_value, Some(NOON + HOUR));
    protocol::start_above(&mut alone, NOON + 2 * HOUR).unwrap();
    assert_eq!(alone.page.last_value, Some(NOON + 2 * HOUR));
}

#[test]
fn a_disk_that_fails_grants_nothing() {
    let mut alone = alone();
    let before = alone.lock(|state| state.ledger);
    alone.disk_fails.set(true);
    let now = NOON + 10 * SECOND;
    alone.at(now);
    assert_eq!(protocol::grant(&mut alone, now, now + 1, false), Err(Trouble::Disk));
    assert_eq!(alone.lock(|state| state.ledger), before);
    // As long as granted time remains, sessions make IDs.
    let now = NOON + 5 * SECOND / 2;
    alone.at(now);
    assert!(matches!(protocol::grant(&mut alone, now, now + 1, false), Ok(Grant::Window(..))));
}

/// The guarantee says so. While one session renews it, the others have a second in which they need not wait.
#[test]
fn time_is_renewed_when_a_second_is_left() {
    let mut alone = alone();
    let until = |alone: &Alone| alone.lock(|state| state.ledger).unwrap().time.until();
    let first = until(&alone);
    for (left, is_renewed) in [(SECOND + 1, false), (SECOND, true)] {
        let now = first - left;
        alone.at(now);
        protocol::grant(&mut alone, now, now + 1, false).unwrap();
        assert_eq!(until(&alone) > first, is_renewed, "{left}");
    }
}

proptest! {
    /// The new record has overwritten some bytes of the older one, or other bytes are there.
    #[test]
    fn a_torn_write_loses_nothing(torn in 0..SIZE, junk in any::<u8>(), to_end in any::<bool>()) {
        let mut alone = alone();
        write(&mut alone);
        let last = number(&alone);
        let mut file = alone.file.borrow().clone().unwrap();
        write(&mut alone);
        let Some(half) = *alone.writes.borrow().last().unwrap() else { panic!("a half is written") };
        let new = alone.file.borrow().clone().unwrap();
        let place = half * HALF;
        file[place..place + torn].copy_from_slice(&new[place..place + torn]);
        if to_end {
            file[place + torn..place + HALF].fill(junk);
        }
        let found = newest(&file).unwrap().0.1.number;
        prop_assert!(found == last || found == last + 1);
    }
}
