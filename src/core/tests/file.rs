//! The file of a server: a record that is on disk is not overwritten before the next one is, and a fault is not overwritten at all.

use flake_core::ledger::durable::file::{FILE, HALF, newest, store};
use flake_core::ledger::durable::page::record_mark;
use flake_core::ledger::durable::record_format::{SIZE, Unreadable};
use flake_core::ledger::host::{Fault, Host, Server};
use flake_core::ledger::time::operator::start_above;
use proptest::prelude::*;

mod alone;
use alone::{Alone, NOON, SECOND, Trouble};

/// A server that has written its file.
fn alone() -> Alone {
    let mut alone = Alone::new();
    record_mark(&mut alone).unwrap();
    write(&mut alone);
    alone
}

fn write(alone: &mut Alone) {
    let ledger = alone.ledger();
    store(&alone.writer(), &ledger).unwrap();
}

fn number(alone: &Alone) -> u64 {
    newest(alone.file.borrow().as_ref().unwrap()).unwrap().1.number
}

/// The half that was written last stays until the other half is on disk.
#[test]
fn halves_are_written_in_turn() {
    let mut alone = alone();
    alone.writes.borrow_mut().clear();
    for _ in 0..4 {
        write(&mut alone);
        assert_eq!(number(&alone), alone.lock(|state| state.file.number), "the newer half counts");
    }
    let halves: Vec<usize> = alone.writes.borrow().iter().map(|write| write.unwrap()).collect();
    let first = halves[0];
    assert_eq!(halves, [first, 1 - first, first, 1 - first]);
}

/// After a start, it is unknown which half is on disk. A promise must not rely on a record that may be lost.
#[test]
fn the_first_record_of_a_start_replaces_the_file() {
    let mut alone = alone();
    start_above(&mut alone, NOON + SECOND).unwrap();
    let mut alone = alone.restarted();
    let last = number(&alone);
    assert_eq!(start_above(&mut alone, NOON + SECOND), Ok((NOON + SECOND, false)));
    assert_eq!(*alone.writes.borrow(), [None]);
    assert!(number(&alone) > last, "the number of the record must increase");
    write(&mut alone);
    assert!(alone.writes.borrow()[1].is_some(), "the second record must replace a half only");
}

#[test]
fn a_file_that_is_deleted_is_written_again() {
    let mut alone = alone();
    *alone.file.get_mut() = None;
    write(&mut alone);
    assert_eq!(alone.in_file(), alone.ledger().reserved);
}

#[test]
fn a_fault_raises_an_error_and_is_left_alone() {
    let whole = alone().file.into_inner().unwrap();
    let newer = |bytes: &[u8]| {
        let mut newer = bytes.to_vec();
        (newer[4], newer[6]) = (9, 9);
        newer
    };
    for (bytes, fault) in [
        (vec![], Unreadable::Damaged),
        (whole[..HALF].to_vec(), Unreadable::Damaged),
        (whole[..FILE - 1].to_vec(), Unreadable::Damaged),
        (vec![0; FILE], Unreadable::Damaged),
        (newer(&whole), Unreadable::Newer(9)),
    ] {
        let mut alone = Alone::new();
        *alone.file.get_mut() = Some(bytes.clone());
        let found = record_mark(&mut alone).unwrap_err();
        assert_eq!(found, Trouble::Fault(Fault::File(fault)));
        assert_eq!(*alone.file.borrow(), Some(bytes));
    }
    let page = alone().page.bytes.unwrap();
    for (bytes, fault) in [(vec![0; page.len()], Unreadable::Damaged), (newer(&page), Unreadable::Newer(9))] {
        let mut alone = Alone::new();
        alone.page.bytes = Some(bytes.clone());
        let found = record_mark(&mut alone).unwrap_err();
        assert_eq!(found, Trouble::Fault(Fault::Page(fault)));
        assert_eq!(alone.page.bytes, Some(bytes));
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
        let found = newest(&file).unwrap().1.number;
        prop_assert!(found == last || found == last + 1);
    }
}
