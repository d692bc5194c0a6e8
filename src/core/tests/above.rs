//! New IDs of a layout and the numbers that a column already contains.

use flake_core::{BUILTIN, Layout, Remedy, built_in};

/// 2026-11-24.
const NOW: i64 = 1_795_478_400_000_000;
const AHEAD: i64 = 5_000_000;

fn layout(name: &str) -> &'static Layout {
    built_in(name).unwrap()
}

fn remedy(number: i64, name: &str) -> Remedy {
    layout(name).remedy(number, NOW, AHEAD, BUILTIN.iter())
}

#[test]
fn the_floor_is_the_smallest_id_of_the_tick() {
    let twitter = layout("twitter");
    let (smallest, greatest) = (twitter.min_at(NOW).unwrap(), twitter.max_at(NOW).unwrap());
    for id in [smallest, smallest + 1, greatest] {
        assert_eq!(twitter.floor(id).unwrap(), smallest as i64);
    }
    assert!(layout("uniqueid").floor(0).is_err(), "uniqueid is not ordered by time");
    assert!(layout("seata").floor(0).is_err(), "seata is not ordered by time");
}

#[test]
fn ids_of_the_layout_itself_are_skipped_for_seconds_only() {
    let id = |at| layout("twitter").max_at(at).unwrap() as i64;
    assert_eq!(remedy(id(NOW), "twitter"), Remedy::StartAbove);
    assert_eq!(remedy(id(NOW + AHEAD - 1000), "twitter"), Remedy::StartAbove);
    assert_ne!(remedy(id(NOW + AHEAD), "twitter"), Remedy::StartAbove);
}

#[test]
fn layouts_above_are_named_if_they_can_be_used() {
    let [instagram, pgactive] = ["instagram", "pgactive"].map(|name| layout(name).min_at(NOW).unwrap() as i64);
    assert_eq!(remedy(instagram - 1, "twitter"), Remedy::Layouts(vec!["instagram".to_owned()]));
    // IDs of pgactive are above it, but turn negative in 2034.
    assert_eq!(remedy(instagram, "twitter"), Remedy::EarlierEpoch);
    assert_eq!(remedy(pgactive, "twitter"), Remedy::EarlierEpoch);
    assert_eq!(remedy(i64::MAX, "twitter"), Remedy::NoRoom);
    let Remedy::Layouts(names) = remedy(1 << 53, "si") else { panic!() };
    assert!(names.contains(&"twitter".to_owned()), "twitter is missing: {names:?}");
    // Layouts that are not ordered by time, and layouts that flake only reads, are left out.
    assert!(["uniqueid", "seata", "simpleflake", "cockroach"].iter().all(|&name| !names.contains(&name.to_owned())));
}
