//! The mark's file: a write that fails at any point leaves the previous record.

use flake_core::Node;
use flake_core::record::{ExitNote, Owner, Record, SIZE};
use flake_core::timeline::{Stretch, Timeline};
use proptest::prelude::*;

const LONGEST: Owner =
    Owner { node: (u32::MAX, u32::MAX), wal_timeline: u32::MAX, memory: u32::MAX, of_others: i64::MIN };

fn stretches(count: usize) -> Vec<Stretch> {
    (0..count as i64)
        .map(|n| Stretch { from: i64::MAX / 64 * n, until: i64::MAX / 64 * n + 1_000_000_000_000 })
        .collect()
}

#[test]
fn the_longest_record_fits() {
    let timeline = Timeline::of(&stretches(32), 31).unwrap();
    let exit_note = ExitNote { boot_id: "0123abcd-0123-0123-0123-0123456789ab".to_owned(), free_from: i64::MIN };
    let record = Record::new(u64::MAX, LONGEST, &timeline, Some(exit_note));
    let bytes = record.encode();
    assert_eq!(bytes.len(), SIZE);
    assert_eq!(Record::newest(&bytes), Some((0, record)));
}

#[test]
fn what_is_no_timeline_is_no_record() {
    assert_eq!(Timeline::of(&[], 0), None);
    assert_eq!(Timeline::of(&stretches(3), 3), None);
    assert_eq!(Timeline::of(&stretches(33), 0), None);
    assert_eq!(Timeline::of(&[Stretch { from: 2, until: 1 }], 0), None);
    assert_eq!(Timeline::of(&[Stretch { from: 1, until: 5 }, Stretch { from: 4, until: 9 }], 0), None);
    assert_eq!(Record::newest(b""), None);
    assert_eq!(Record::newest(&[0; 2 * SIZE]), None);
}

/// One character of a record on disk is another, or it ends early.
#[test]
fn a_damaged_record_is_none() {
    let timeline = Timeline::of(&stretches(2), 1).unwrap();
    let whole = Record::new(7, LONGEST, &timeline, None).encode();
    let written = whole.trim_ascii_end().len();
    for place in 0..written {
        let mut damaged = whole.clone();
        damaged[place] = if damaged[place] == b'1' { b'2' } else { b'1' };
        assert_eq!(Record::newest(&damaged), None, "{}", String::from_utf8_lossy(&damaged[..written]));
        assert_eq!(Record::newest(&whole[..place]), None);
    }
}

#[test]
fn a_memory_counts_for_its_node_and_under_other_numbers_of_nodes() {
    let owner = Owner { node: (1, 4), ..LONGEST };
    let counts = [(1, 4), (2, 4), (1, 8), (2, 8)].map(|(id, count)| owner.counts_for(Node::new(id, count).unwrap()));
    assert_eq!(counts, [true, false, true, true]);
}

proptest! {
    /// Some bytes of the older record have been replaced by those of the new one, or by others.
    #[test]
    fn a_torn_write_loses_nothing(until in 1..i64::MAX, torn in 0..SIZE, junk in any::<u8>(), to_end in any::<bool>()) {
        let timeline = |until| Timeline::of(&[Stretch { from: 0, until }], 0).unwrap();
        let [before, last, next] = [1, 2, 3].map(|number| Record::new(number, LONGEST, &timeline(until / 3 * number as i64), None));
        let mut file = last.encode();
        file.extend(before.encode());
        prop_assert_eq!(Record::newest(&file), Some((0, last.clone())));
        let new = next.encode();
        file[SIZE..SIZE + torn].copy_from_slice(&new[..torn]);
        if to_end {
            file[SIZE + torn..].fill(junk);
        }
        let found = Record::newest(&file);
        prop_assert!(found == Some((0, last)) || found == Some((1, next)));
    }
}
