//! The format of a record: what is encoded is decoded again, damaged bytes are refused, and bytes of a later version are kept.

use flake_core::ledger::durable::record::{MAX_PUBLISHED, Published, Record, Reserved, SPARE_BYTES};
use flake_core::ledger::durable::record_format::{SIZE, Unreadable};
use flake_core::{Turn, Turns};
use twox_hash::XxHash3_64;

const SPARE_BYTES_AT: usize = SIZE - SPARE_BYTES;
const COUNT_AT: usize = 64;

/// Adds the right checksum.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = XxHash3_64::oneshot(&bytes[16..SIZE]);
    bytes[8..16].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn some() -> Record {
    let turn = |timeline, turn| Some(Turn { timeline, turn });
    Record {
        reserved: Reserved { acceptances: 3, until: [-5, i64::MAX] },
        writer: u64::MAX - 1,
        turns: Turns { before: turn(3, 3), last: turn((1 << 29) - 1, 0) },
        published: vec![Published { watermark: -9, next: 1 << 33 }; MAX_PUBLISHED],
        ..Record::default()
    }
}

#[test]
fn damaged_bytes_are_not_read() {
    let whole = some().encode(42);
    for at in 0..SIZE {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        // The versions are not part of the checksum, because a library that cannot read a format cannot check it either.
        if !(4..8).contains(&at) {
            assert_eq!(Record::decode(&damaged), Err(Unreadable::Damaged), "byte {at}");
        }
        assert_eq!(Record::decode(&whole[..at]), Err(Unreadable::Damaged));
    }
    assert_eq!(Record::decode(&[0; SIZE]), Err(Unreadable::Damaged));
    for count in [MAX_PUBLISHED as u64 + 1, u64::MAX] {
        let mut impossible = whole.clone();
        impossible[COUNT_AT..COUNT_AT + 8].copy_from_slice(&count.to_le_bytes());
        assert_eq!(Record::decode(&sealed(impossible)), Err(Unreadable::Damaged));
    }
}

/// A later version stores more, in the space for it.
#[test]
fn bytes_of_a_later_version_are_copied() {
    let mut later = some().encode(42);
    later[4..6].copy_from_slice(&2u16.to_le_bytes());
    for (at, byte) in later[SPARE_BYTES_AT..].iter_mut().enumerate() {
        *byte = at as u8;
    }
    let later = sealed(later);
    let (mut read, _) = Record::decode(&later).unwrap();
    read.merge_reserved(&Reserved { acceptances: 4, until: [7, 7] });
    let again = read.encode(0);
    assert_eq!(again[SPARE_BYTES_AT..], later[SPARE_BYTES_AT..]);
    let expected = Reserved { acceptances: 4, until: [7, i64::MAX] };
    assert_eq!(Record::decode(&again).unwrap().0.reserved, expected);
}

#[test]
fn a_format_that_needs_a_later_version_is_refused() {
    let mut later = some().encode(0);
    later[4..6].copy_from_slice(&3u16.to_le_bytes());
    later[6..8].copy_from_slice(&2u16.to_le_bytes());
    assert_eq!(Record::decode(&sealed(later)), Err(Unreadable::Newer(3)));
}
