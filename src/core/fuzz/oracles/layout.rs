//! Layouts, compared with a slow reading of their fields, one by one.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use flake_core::{Error, IdSource, Layout, Reversal, Role, TextForm};

use super::choices::Choices;

/// The bits of a layout, read from its fields.
struct Bits {
    /// The bits that hold time, and the lowest of them.
    time: u64,
    shift: u32,
    /// The bits that always hold `fixed`, including the bits above the fields.
    is_fixed: u64,
    fixed: u64,
    reversed: Reversal,
    flag: u64,
}

impl Bits {
    fn of(layout: &Layout) -> Self {
        let mut bits = Self { time: 0, shift: 0, is_fixed: 0, fixed: 0, reversed: Reversal::Never, flag: 0 };
        let mut shift = 0;
        for field in layout.fields().iter().rev() {
            let mask = (u64::MAX >> (64 - field.bits)) << shift;
            match field.role {
                Role::Timestamp { reversed } => (bits.time, bits.shift, bits.reversed) = (mask, shift, reversed),
                Role::Reserved { value } => {
                    bits.is_fixed |= mask;
                    bits.fixed |= value << shift;
                }
                Role::Flag => bits.flag = mask,
                _ => {}
            }
            shift += u32::from(field.bits);
        }
        assert_eq!(shift, layout.width());
        bits.is_fixed |= if shift == 64 { 0 } else { u64::MAX << shift };
        bits
    }

    /// The tick of an ID; None if the layout cannot have made the ID.
    fn tick(&self, layout: &Layout, id: u64) -> Option<u64> {
        let stored = (id & self.time) >> self.shift;
        let is_turned = match self.reversed {
            Reversal::Never => false,
            Reversal::Always => true,
            Reversal::UnlessFlagged => id & self.flag == 0,
        };
        let width = self.time.count_ones();
        let tick = if is_turned { (0..width).fold(0, |tick, bit| tick << 1 | stored >> bit & 1) } else { stored };
        let end = i128::from(layout.epoch()) + (i128::from(tick) + 1) * i128::from(layout.tick_length());
        (id & self.is_fixed == self.fixed && end <= i128::from(i64::MAX)).then_some(tick)
    }

    /// All IDs of a tick with these time bits; None if there are too many.
    fn all(&self, time: u64) -> Option<HashSet<u64>> {
        let free = !(self.time | self.is_fixed);
        if free.count_ones() > 8 {
            return None;
        }
        let mut ids = HashSet::new();
        let mut chosen = 0u64;
        loop {
            ids.insert(chosen | self.fixed | time);
            chosen = chosen.wrapping_sub(free) & free;
            if chosen == 0 {
                return Some(ids);
            }
        }
    }
}

/// Checks some IDs and spans of a layout.
pub fn holds(layout: &Layout, choices: &mut Choices<'_>) {
    let bits = Bits::of(layout);
    let ends = [
        layout.epoch(),
        layout.start_of(layout.last_tick()),
        layout.start_of(layout.last_tick()) + layout.tick_length(),
    ];
    assert_eq!(layout.tick_at(ends[0]), Ok(0));
    assert_eq!(layout.tick_at(ends[2] - 1), Ok(layout.last_tick()));
    assert!(layout.tick_at(ends[2]).is_err() && layout.tick_at(ends[0] - 1).is_err());
    for raw in [0, u64::MAX, 0x5555_5555_5555_5555, choices.number(), choices.number()] {
        let possible = raw & !bits.is_fixed | bits.fixed;
        for id in [raw, possible, possible & !bits.time] {
            match bits.tick(layout, id) {
                Some(tick) => is_possible(layout, id, tick, choices),
                None => is_impossible(layout, id),
            }
        }
    }
    for _ in 0..4 {
        let at = choices.instant(&ends);
        match layout.tick_at(at) {
            Ok(tick) => {
                let start = layout.start_of(tick);
                assert!(start <= at && at - start < layout.tick_length());
            }
            Err(error) => {
                assert!(matches!(error, Error::InstantOutOfRange { .. }) && !(ends[0]..ends[2]).contains(&at))
            }
        }
        let _ = (layout.min_at(at), layout.max_at(at));
    }
}

fn is_impossible(layout: &Layout, id: u64) {
    let is_refused = |found: Option<Error>| assert!(matches!(found, Some(Error::ImpossibleId { .. })), "{found:?}");
    is_refused(layout.tick_of(id).err());
    is_refused(layout.unpack(id).err());
    is_refused(layout.encode(id).err());
    is_refused(layout.explain(id).err());
}

fn is_possible(layout: &Layout, id: u64, tick: u64, choices: &mut Choices<'_>) {
    assert_eq!(layout.tick_of(id), Ok(tick));
    let parts = layout.unpack(id).unwrap();
    assert_eq!(layout.unpack(layout.pack(&parts).unwrap()), Ok(parts));
    let numbers: BTreeMap<_, _> =
        layout.numbers(id).into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
    assert_eq!(layout.make(tick, &numbers), Ok(id));
    let text = layout.encode(id).unwrap();
    assert_eq!(layout.parse(&text), Ok(id));
    if layout.text == TextForm::Decimal {
        assert_eq!(text, id.to_string());
    }
    let drawn = layout.explain(id).unwrap();
    let drawn: String = drawn.lines().nth(2).unwrap().split(' ').collect();
    assert_eq!(drawn, format!("{id:064b}"));
    let start = layout.start_of(tick);
    assert_eq!(layout.tick_at(start), Ok(tick));
    assert_eq!(layout.tick_at(start + layout.tick_length() - 1), Ok(tick));
    match layout.last_ordered_tick() {
        Some(last) if tick <= last => is_in_its_spans(layout, id, start, choices),
        Some(_) => assert!((id as i64) < 0 && matches!(layout.min_at(start), Err(Error::InstantOutOfRange { .. }))),
        None => assert!(matches!(layout.max_at(start), Err(Error::NotTimeOrdered { .. }))),
    }
}

/// An ID lies in the range of a span exactly if its tick overlaps the span.
fn is_in_its_spans(layout: &Layout, id: u64, start: i64, choices: &mut Choices<'_>) {
    let end = start + layout.tick_length();
    assert!((layout.min_at(start).unwrap()..=layout.max_at(start).unwrap()).contains(&id));
    for _ in 0..3 {
        let near = [start, end, layout.epoch()];
        let (from, to) = (choices.instant(&near), choices.instant(&near));
        let from = if choices.byte() < 64 { Bound::Unbounded } else { Bound::Included(from) };
        let to = match choices.byte() % 4 {
            0 => Bound::Unbounded,
            1 => Bound::Included(to),
            _ => Bound::Excluded(to),
        };
        let is_empty = match (from, to) {
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (Bound::Included(from), Bound::Excluded(to)) => from >= to,
            _ => false,
        };
        let begins = !matches!(from, Bound::Included(from) if from >= end);
        let goes_on = match to {
            Bound::Included(to) => start <= to,
            Bound::Excluded(to) => start < to,
            Bound::Unbounded => true,
        };
        match layout.ids_during(from, to) {
            // PostgreSQL does not have such a range.
            _ if is_empty => {}
            Ok(found) => {
                let is_within = found.is_some_and(|(first, last)| (first..=last).contains(&(id as i64)));
                assert_eq!(is_within, begins && goes_on, "{from:?} {to:?} {found:?}");
            }
            Err(error) => {
                let turns_negative = layout.last_ordered_tick() < Some(layout.last_tick());
                assert!(turns_negative && matches!(error, Error::InstantOutOfRange { .. }), "{error:?}");
            }
        }
    }
}

/// Two layouts have the same key exactly if they share generators. They overlap exactly if they could make the same ID in a tick
/// and do not share generators.
pub fn related(one: &Layout, other: &Layout, choices: &mut Choices<'_>) {
    let is_same = one.same_bits(other);
    assert_eq!(is_same, other.same_bits(one));
    assert_eq!(is_same, (&one).key() == (&other).key());
    assert_eq!(one.overlaps(other), other.overlaps(one));
    assert!(!(is_same && one.overlaps(other)));
    let (bits, others) = (Bits::of(one), Bits::of(other));
    let is_same_time = (one.epoch(), one.tick_length()) == (other.epoch(), other.tick_length());
    let is_reversed = bits.reversed != Reversal::Never;
    let is_same_place =
        (bits.shift, bits.reversed) == (others.shift, others.reversed) && (!is_reversed || bits.time == others.time);
    if !is_same_time || !is_same_place {
        assert!(!is_same && !one.overlaps(other));
        return;
    }
    let time = choices.number() & bits.time & others.time;
    if bits.flag | others.flag > 0 || bits.tick(one, time | bits.fixed).is_none() {
        return;
    }
    if let (Some(ids), Some(others_ids)) = (bits.all(time), others.all(time)) {
        assert_eq!(!ids.is_disjoint(&others_ids), is_same || one.overlaps(other));
        assert!(!is_same || ids == others_ids);
    }
}
