//! Reserved time only rises, and pg_upgrade's number loses none of it.

use flake_core::ledger::durable::record::{Published, Record, Reserved};
use proptest::prelude::*;

const YEAR: i64 = 31_557_600_000_000;

#[test]
fn an_acceptance_removes_the_watermarks_from_before() {
    let mut record = Record { published: vec![Published { watermark: 10, next: 100 }], ..Record::default() };
    record.merge_reserved(&Reserved { acceptances: 0, until: [50, 60] });
    assert_eq!((record.published.len(), record.reserved.end()), (1, 50));
    record.merge_reserved(&Reserved { acceptances: 1, until: [5, 6] });
    assert_eq!((record.published.len(), record.reserved.end()), (0, 60));
}

#[test]
fn the_number_of_nothing_can_be_the_value_of_a_sequence() {
    assert!(Reserved::NONE.number() > 0, "setval refuses values below 1");
    assert_eq!(Reserved::from_number(Reserved::NONE.number()).acceptances, 0);
}

proptest! {
    /// From 2020 to 2290, rounded up by less than 4 seconds.
    #[test]
    fn a_number_keeps_both_halves_and_the_generation(acceptances in 0u64..9, years in [50.1f64..320.0, 50.1f64..320.0]) {
        let until = years.map(|years| (years * YEAR as f64) as i64);
        let reserved = Reserved { acceptances, until };
        let kept = Reserved::from_number(reserved.number());
        prop_assert_eq!(kept.generation(), reserved.generation());
        for (kept, until) in kept.until.iter().zip(until) {
            prop_assert!((0..4_000_000).contains(&(kept - until)), "{} {}", kept, until);
        }
        prop_assert_eq!(kept.number(), reserved.number());
    }
}
