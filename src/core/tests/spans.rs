//! The IDs of a span, and the IDs on one side of an instant, also at the ends of a layout's time and of sno's time.

use std::ops::Bound::{Excluded, Included, Unbounded};

use flake_core::sno::TICK;
use flake_core::{Error, Sno, built_in};

mod made;
use made::layout;

/// When the last tick of sno begins.
const LAST: i64 = Sno::from_bytes([u8::MAX; 10]).instant();

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
fn a_span_of_snos_begins_and_ends_with_units() {
    let epoch = Sno::ZERO.instant();
    let ticks = |first: i64, last: i64| Some((Sno::min_at(first).unwrap(), Sno::max_at(last).unwrap()));
    let spans = [
        (Unbounded, Unbounded, ticks(epoch, LAST)),
        (Included(epoch), Included(epoch), ticks(epoch, epoch)),
        (Excluded(epoch - 1), Included(epoch + TICK - 1), ticks(epoch, epoch)),
        (Included(epoch + TICK), Excluded(epoch + 2 * TICK), ticks(epoch + TICK, epoch + TICK)),
        (Unbounded, Included(epoch - 1), None),
        (Unbounded, Excluded(epoch), None),
        (Unbounded, Excluded(i64::MIN), None),
        (Included(LAST), Included(LAST + TICK), ticks(LAST, LAST)),
        (Included(LAST + TICK), Unbounded, None),
        (Included(epoch + TICK), Included(epoch), None),
    ];
    for (from, to, snos) in spans {
        assert_eq!(Sno::during(from, to), snos, "{from:?} {to:?}");
    }
}

#[test]
fn the_first_and_last_ids_around_an_instant_are_right() {
    let twitter = built_in("twitter").unwrap();
    let (epoch, last_tick) = (twitter.epoch(), twitter.start_of(twitter.last_tick()));
    let (tick, highest) = (1 << 22, i64::MAX as u64);
    let last = highest - tick + 1;
    // Each row: an instant, the first IDs since and after it, and the last IDs until and before it.
    let sides = [
        (i64::MIN, Some(0), Some(0), None, None),
        (epoch - 1, Some(0), Some(0), None, None),
        (epoch, Some(0), Some(tick), Some(tick - 1), None),
        (epoch + 1, Some(tick), Some(tick), Some(tick - 1), Some(tick - 1)),
        (epoch + 999, Some(tick), Some(tick), Some(tick - 1), Some(tick - 1)),
        (epoch + 1_000, Some(tick), Some(2 * tick), Some(2 * tick - 1), Some(tick - 1)),
        (last_tick, Some(last), None, Some(highest), Some(last - 1)),
        (last_tick + 1, None, None, Some(highest), Some(highest)),
        (i64::MAX, None, None, Some(highest), Some(highest)),
    ];
    for (at, since, after, until, before) in sides {
        let found = (twitter.since(at), twitter.after(at), twitter.until(at), twitter.before(at));
        assert_eq!(found, (Ok(since), Ok(after), Ok(until), Ok(before)), "{at}");
    }
    let tick = |at: i64| (Sno::min_at(at).unwrap(), Sno::max_at(at).unwrap());
    let ((first, last_of_first), (second, _), (last, last_of_last)) =
        (tick(Sno::ZERO.instant()), tick(Sno::ZERO.instant() + TICK), tick(LAST));
    let of_sno = |at: i64| (Sno::since(at), Sno::after(at), Sno::until(at), Sno::before(at));
    assert_eq!(of_sno(i64::MIN), (Some(first), Some(first), None, None));
    assert_eq!(of_sno(Sno::ZERO.instant()), (Some(first), Some(second), Some(last_of_first), None));
    assert_eq!(of_sno(Sno::ZERO.instant() + 1), (Some(second), Some(second), Some(last_of_first), Some(last_of_first)));
    assert_eq!(of_sno(LAST).0, Some(last));
    assert_eq!(of_sno(LAST + 1), (None, None, Some(last_of_last), Some(last_of_last)));
    assert_eq!(of_sno(i64::MAX), (None, None, Some(last_of_last), Some(last_of_last)));
}

/// A range must not contain a number for which the filter raises an error.
#[test]
fn layouts_whose_ids_have_no_hole_are_known() {
    let contiguous =
        |name: &str| built_in(name).unwrap().contiguous_ids().map(|s| (s.lowest, s.highest, s.turns_negative));
    assert_eq!(contiguous("twitter"), Some((0, i64::MAX, false)));
    assert_eq!(contiguous("si"), Some((0, (1 << 53) - 1, false)));
    assert_eq!(contiguous("base64id"), Some((0, (1 << 60) - 1, false)));
    assert_eq!(contiguous("discord"), Some((0, i64::MAX, true)));
    assert_eq!(contiguous("uniqueid"), None);
    assert_eq!(contiguous("seata"), None);
    let reserved = |fields| layout(1_000, fields).contiguous_ids();
    let above = reserved("r2 t40 s10").unwrap();
    assert_eq!((above.lowest, above.highest, above.turns_negative), (1 << 50, (1 << 51) - 1, false));
    assert_eq!(reserved("t40 r2 s10"), None);
}
