//! The IDs of a span, at the ends of a layout's time and of sno's.

use std::ops::Bound::{Excluded, Included, Unbounded};

use flake_core::sno::UNIT;
use flake_core::{Error, Sno, built_in};

/// When the last unit of sno begins.
const LAST: i64 = Sno::from_bytes([u8::MAX; 10]).instant();

#[test]
fn time_before_the_epoch_and_after_the_last_tick_does_not_count() {
    let twitter = built_in("twitter").unwrap();
    let (epoch, end) = (twitter.epoch(), twitter.start_of(twitter.last_tick()) + 1_000);
    let (of_a_tick, last) = (0x3f_ffff, i64::MAX);
    let spans = [
        (Unbounded, Unbounded, Some((0, last))),
        (Included(epoch), Included(epoch), Some((0, of_a_tick))),
        (Included(epoch - 5_000), Included(epoch), Some((0, of_a_tick))),
        (Included(epoch - 5_000), Excluded(epoch), None),
        (Unbounded, Included(epoch - 1), None),
        (Unbounded, Excluded(i64::MIN), None),
        (Included(end - 1), Included(end + 5_000), Some((last - of_a_tick, last))),
        (Included(end), Included(end + 5_000), None),
        (Included(epoch + 5_000), Included(epoch), None),
    ];
    for (from, to, ids) in spans {
        assert_eq!(twitter.ids_during(from, to), Ok(ids), "{from:?} {to:?}");
    }
}

/// Bit 63 of these IDs belongs to the time.
#[test]
fn instants_whose_ids_are_negative_are_refused() {
    let discord = built_in("discord").unwrap();
    let end = discord.start_of(discord.last_ordered_tick().unwrap()) + 1_000;
    assert_eq!(discord.ids_during(Unbounded, Excluded(end)), Ok(Some((0, i64::MAX))));
    assert_eq!(discord.ids_during(Included(end - 1), Unbounded), Ok(Some((i64::MAX - 0x3f_ffff, i64::MAX))));
    for (from, to) in [(Unbounded, Included(end)), (Included(end), Unbounded)] {
        let refused = discord.ids_during(from, to);
        assert!(matches!(refused, Err(Error::InstantOutOfRange { .. })), "{from:?} {to:?}: {refused:?}");
    }
}

#[test]
fn spans_of_sno() {
    let epoch = Sno::ZERO.instant();
    let units = |first: i64, last: i64| Some((Sno::min_at(first).unwrap(), Sno::max_at(last).unwrap()));
    let spans = [
        (Unbounded, Unbounded, units(epoch, LAST)),
        (Included(epoch), Included(epoch), units(epoch, epoch)),
        (Excluded(epoch - 1), Included(epoch + UNIT - 1), units(epoch, epoch)),
        (Included(epoch + UNIT), Excluded(epoch + 2 * UNIT), units(epoch + UNIT, epoch + UNIT)),
        (Unbounded, Included(epoch - 1), None),
        (Unbounded, Excluded(epoch), None),
        (Unbounded, Excluded(i64::MIN), None),
        (Included(LAST), Included(LAST + UNIT), units(LAST, LAST)),
        (Included(LAST + UNIT), Unbounded, None),
        (Included(epoch + UNIT), Included(epoch), None),
    ];
    for (from, to, snos) in spans {
        assert_eq!(Sno::during(from, to), snos, "{from:?} {to:?}");
    }
}
