//! The time of IDs, and the IDs of a span of time.

use flake_core::Error;
use proptest::prelude::*;

use crate::layouts::{any_layout, below_time, possible};

proptest! {
    #![proptest_config(crate::config())]

    /// An ID lies on one side of an instant exactly if its time does, up to the last tick up to which bigints sort by time.
    #[test]
    fn filters_by_time_are_ranges(layout in any_layout(), id: u64, offset in -3i64..4, at: i64, which in 0usize..8) {
        let id = possible(&layout, id);
        let start = layout.start_of(layout.tick_of(id).unwrap());
        let Some(last_tick) = layout.last_ordered_tick() else {
            let refused = matches!(layout.since(at), Err(Error::NotTimeOrdered { .. }));
            prop_assert!(refused && layout.contiguous_ids().is_none());
            return Ok(());
        };
        let end = layout.start_of(last_tick);
        if start > end {
            return Ok(());
        }
        let near = [start, start + layout.tick_length(), layout.epoch(), end, i64::MAX, i64::MIN, 0, at][which];
        let at = near.saturating_add(offset);
        let (signed, ends) = (id as i64, [layout.since(at), layout.after(at), layout.until(at), layout.before(at)]);
        let [since, after, until, before] = ends.map(|end| end.unwrap().map(|id| id as i64));
        prop_assert_eq!(since.is_some_and(|first| first <= signed), at <= start);
        prop_assert_eq!(after.is_some_and(|first| first <= signed), at < start);
        prop_assert_eq!(until.is_some_and(|last| signed <= last), start <= at);
        prop_assert_eq!(before.is_some_and(|last| signed <= last), start < at);
    }

    /// Exactly these IDs have a time.
    #[test]
    fn contiguous_ids_have_no_hole(layout in any_layout(), number: u64, inside: bool) {
        let Some(contiguous) = layout.contiguous_ids() else { return Ok(()) };
        let is_inside = |id: i64| (contiguous.lowest..=contiguous.highest).contains(&id);
        let length = contiguous.highest.abs_diff(contiguous.lowest);
        let id = if inside { contiguous.lowest.wrapping_add_unsigned(number % length.max(1)) } else { number as i64 };
        let tick = layout.tick_of(id as u64);
        // Where IDs turn negative, the timestamp has the highest bits. Ticks after the last instant are in no ID.
        let is_later = contiguous.turns_negative && id < 0 && id as u64 >> below_time(&layout) <= layout.last_tick();
        prop_assert_eq!(tick.is_ok(), is_inside(id) || is_later, "{:?}", contiguous);
        prop_assert!(!is_inside(id) || tick.unwrap() <= layout.last_ordered_tick().unwrap());
        for (end, is_within) in [(contiguous.lowest, true), (contiguous.highest, true), (contiguous.highest.wrapping_add(1), false)] {
            prop_assert_eq!(layout.tick_of(end as u64).is_ok(), is_within || contiguous.turns_negative && end < 0);
        }
    }
}
