//! Published watermarks: which are kept, and which of them a snapshot may use.

use flake_core::ledger::durable::record::{MAX_PUBLISHED, Published};
use flake_core::watermark::Snapshot;
use flake_core::watermark::published::{add, highest};
use proptest::prelude::*;

fn one(watermark: i64, next: u64) -> Published {
    Published { watermark, next }
}

fn snapshot(xmin: u64, xmax: u64) -> Snapshot<'static> {
    Snapshot { xmin, xmax, running: &[] }
}

#[test]
fn a_snapshot_sees_that_a_later_transaction_has_ended_or_all_earlier_ones() {
    let published = [one(10, 100), one(20, 200), one(30, 300)];
    let of = |xmin, xmax| highest(&published, &snapshot(xmin, xmax));
    assert_eq!(of(50, 99), None);
    assert_eq!(of(50, 100), None, "number 99 has ended, and an earlier one may run");
    assert_eq!(of(50, 101), Some(10));
    assert_eq!(of(100, 100), Some(10), "all before number 100 have ended");
    assert_eq!((of(50, 201), of(200, 200), of(199, 200)), (Some(20), Some(20), Some(10)));
    assert_eq!(of(1 << 40, 1 << 40), Some(30));
    assert_eq!(highest(&[], &snapshot(5, 5)), None);
}

#[test]
fn a_watermark_that_more_snapshots_may_use_replaces_one_as_high() {
    let mut published = vec![one(10, 100)];
    assert!(!add(&mut published, one(10, 101)) && !add(&mut published, one(9, 100)));
    assert_eq!(published, [one(10, 100)]);
    // Two sessions publish at once.
    assert!(add(&mut published, one(30, 102)) && add(&mut published, one(20, 101)));
    assert_eq!(published, [one(10, 100), one(20, 101), one(30, 102)]);
    assert!(add(&mut published, one(40, 101)));
    assert_eq!(published, [one(10, 100), one(40, 101)]);
}

/// This holds however often watermarks are published, even if one session does nothing else.
#[test]
fn snapshots_of_all_ages_find_one_that_is_not_much_older() {
    for every in [100, 10_000, 1_000_000] {
        let mut published = Vec::new();
        for count in 1..=100_000 {
            add(&mut published, one(count * every, count as u64));
            assert!(published.len() <= MAX_PUBLISHED, "a page has no room for all of them: {published:?}");
        }
        let newest = 100_000 * every;
        assert_eq!(published.last(), Some(&one(newest, 100_000)));
        for age in (0..17).map(|power| every << power).take_while(|age| *age < newest) {
            let taken = ((newest - age) / every) as u64;
            let found = highest(&published, &snapshot(taken, taken)).unwrap();
            assert!(newest - found <= 8 * age, "published every {every}, age {age}: {}", newest - found);
        }
    }
}

proptest! {
    /// The watermarks that are kept are in order, so a snapshot that sees more never gets a lower one.
    #[test]
    fn a_snapshot_that_sees_more_gets_a_higher_watermark(all in prop::collection::vec((0i64..1000, 0u64..1000), 0..80), xmax in 0u64..1001) {
        let mut published = Vec::new();
        for &(watermark, next) in &all {
            add(&mut published, one(watermark, next));
            prop_assert!(published.len() <= MAX_PUBLISHED, "a page has no room for all of them: {published:?}");
            prop_assert!(published.is_sorted_by(|one, other| one.watermark < other.watermark && one.next < other.next));
        }
        prop_assert!(highest(&published, &snapshot(0, xmax)) <= highest(&published, &snapshot(0, xmax + 1)));
        prop_assert_eq!(published.last().map(|one| one.watermark), all.iter().map(|one| one.0).max());
    }
}
