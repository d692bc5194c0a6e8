//! The format of marks: encoded marks are decoded again, damaged bytes are refused, and bytes of a later version are kept.

use flake_core::ledger::block::{FilePart, SIZE, Unreadable};
use flake_core::ledger::bound::Bound;
use flake_core::ledger::marks::{Author, MAX_MARKS, MAX_PUBLISHED, Mark, Marks, Published, ROOM};
use flake_core::ledger::used::{Free, Used};
use flake_core::{Turn, Turns};
use proptest::prelude::*;
use twox_hash::XxHash3_64;

const ROOM_AT: usize = 320;

fn mark(id: u32, until: i64, gaps: &[Free]) -> Mark {
    let by = Author { part: (id, 1000), incarnation: id + 5, start: id + 9 };
    Mark { by, used: Used::except(until, gaps.iter().copied()) }
}

/// Adds the right checksum.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = XxHash3_64::oneshot(&bytes[16..SIZE]);
    bytes[8..16].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn some() -> (Marks, FilePart) {
    let mut marks = Marks::of_all(Used::except(70, [Free { from: 30, to: 40, accepted: true }]));
    marks.set(mark(
        0,
        1000,
        &[Free { from: i64::MIN, to: 10, accepted: false }, Free { from: 20, to: 30, accepted: true }],
    ));
    marks.set(mark(3, i64::MIN, &[]));
    marks.above = 12345;
    marks.bound = Bound { recalls: 4, instant: -5, incarnation: 77 };
    marks.published = vec![Published { horizon: -9, next: 1 << 33 }; MAX_PUBLISHED];
    let turn = |timeline, turn| Some(Turn { timeline, turn });
    marks.turns = Turns { before: turn(3, 3), last: turn((1 << 29) - 1, 0) };
    (marks, FilePart { number: 42, part: (3, 1000), exit_note: None })
}

#[test]
fn marks_that_are_encoded_are_decoded() {
    let (marks, file) = some();
    for part in [Some(file), None] {
        let bytes = marks.encode(part.as_ref());
        assert_eq!(bytes.len(), SIZE);
        assert_eq!(Marks::decode(&bytes), Ok((marks.clone(), part)));
    }
    assert_eq!(Marks::decode(&Marks::default().encode(None)), Ok((Marks::default(), None)));
}

#[test]
fn damaged_bytes_are_not_read() {
    let (marks, file) = some();
    let whole = marks.encode(Some(&file));
    for at in 0..SIZE {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        // The versions are not part of the checksum, because a library that cannot read a format cannot check it either.
        if !(4..8).contains(&at) {
            assert_eq!(Marks::decode(&damaged), Err(Unreadable::Damaged), "byte {at}");
        }
        assert_eq!(Marks::decode(&whole[..at]), Err(Unreadable::Damaged));
    }
    assert_eq!(Marks::decode(&[0; SIZE]), Err(Unreadable::Damaged));
    for (at, count) in [(16, MAX_MARKS as u16 + 1), (18, 200), (120, MAX_PUBLISHED as u16 + 1)] {
        let mut impossible = whole.clone();
        impossible[at..at + 2].copy_from_slice(&count.to_le_bytes());
        assert_eq!(Marks::decode(&sealed(impossible)), Err(Unreadable::Damaged));
    }
}

/// A later version stores more, in the space for it.
#[test]
fn bytes_of_a_later_version_are_copied() {
    let (marks, file) = some();
    let mut later = marks.encode(Some(&file));
    later[4..6].copy_from_slice(&2u16.to_le_bytes());
    for (at, byte) in later[ROOM_AT..ROOM_AT + ROOM].iter_mut().enumerate() {
        *byte = at as u8;
    }
    let later = sealed(later);
    let (mut read, _) = Marks::decode(&later).unwrap();
    read.set(mark(0, 5000, &[]));
    let again = read.encode(None);
    assert_eq!(again[ROOM_AT..ROOM_AT + ROOM], later[ROOM_AT..ROOM_AT + ROOM]);
    assert_eq!(Marks::decode(&again).unwrap().0.of((0, 1000)).unwrap().used.until(), 5000);
}

#[test]
fn a_format_that_needs_a_later_version_is_refused() {
    let mut later = some().0.encode(None);
    later[4..6].copy_from_slice(&3u16.to_le_bytes());
    later[6..8].copy_from_slice(&2u16.to_le_bytes());
    assert_eq!(Marks::decode(&sealed(later)), Err(Unreadable::Newer(3)));
}

/// All marks, with more gaps than fit.
#[test]
fn gaps_without_room_count_as_used() {
    let mut marks = Marks::default();
    let gaps: Vec<Free> = (0..4).map(|at| Free { from: 100 * at, to: 100 * at + 50, accepted: at % 2 == 0 }).collect();
    for id in 0..MAX_MARKS as u32 {
        marks.set(mark(id, 1000 + i64::from(id), &gaps));
    }
    let (read, _) = Marks::decode(&marks.encode(None)).unwrap();
    let kept: usize = read.listed().iter().map(|mark| mark.used.gaps().len()).sum();
    assert_eq!(kept, (SIZE - 5312) / 24);
    for (before, after) in marks.listed().iter().zip(read.listed()) {
        assert_eq!((before.by, before.used.until()), (after.by, after.used.until()));
        assert!(after.used.contains(&before.used), "used time was lost: {before:?}, {after:?}");
        assert!(after.used.gaps().iter().all(|gap| gaps.contains(gap)), "a gap arose that was not there: {after:?}");
    }
}

proptest! {
    #[test]
    fn any_marks_are_encoded_and_decoded(
        listed in prop::collection::vec((any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>(), any::<i64>()), 0..MAX_MARKS),
        above in any::<i64>(),
        bound in (any::<u32>(), any::<i64>(), any::<u32>()),
        folded in prop::option::of(any::<i64>()),
        turns in 0..1_i64 << 62,
        file in prop::option::of((any::<u64>(), any::<u32>(), any::<u32>())),
    ) {
        let mut marks = folded.map_or_else(Marks::default, |until| Marks::of_all(Used::before(until)));
        for (part, count, incarnation, start, until) in listed {
            marks.set(Mark { by: Author { part: (part, count), incarnation, start }, used: Used::before(until) });
        }
        marks.above = above;
        marks.bound = Bound { recalls: bound.0, instant: bound.1, incarnation: bound.2 };
        marks.turns = Turns::numbered(turns);
        let file = file.map(|(number, part, count)| FilePart { number, part: (part, count), exit_note: None });
        prop_assert_eq!(Marks::decode(&marks.encode(file.as_ref())), Ok((marks, file)));
    }

    #[test]
    fn random_bytes_are_refused_or_read_without_a_panic(mut bytes in prop::collection::vec(any::<u8>(), SIZE)) {
        bytes[..8].copy_from_slice(b"FLKM\x01\x00\x01\x00");
        bytes[17] = 0;
        bytes[19] = 0;
        if let Ok((marks, file)) = Marks::decode(&sealed(bytes)) {
            let again = marks.encode(file.as_ref());
            prop_assert_eq!(Marks::decode(&again).map(|(marks, _)| marks.until()), Ok(marks.until()));
        }
    }
}
