//! Packs and unpacks the parts of an ID.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;

use crate::layout::bits::Bits;
use crate::layout::ticks::instants;
use crate::{Error, Field, LONGEST_NAME, Layout, Node, Role};

/// The numbers in an ID. The worker is the whole worker number, even if several fields hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// Ticks since the epoch.
    pub tick: u64,
    /// Worker number.
    pub worker: u64,
    /// Sequence number.
    pub sequence: u64,
    /// Random bits, shifted to where the ID holds them; other bits are ignored.
    pub random: u64,
}

impl Layout {
    /// Returns the ID with these parts, or [`Error::PartOutOfRange`] if a field cannot hold its part.
    pub fn pack(&self, parts: &Parts) -> Result<u64, Error> {
        self.check_part("timestamp", parts.tick, self.last_tick())?;
        self.check_part("worker", parts.worker, self.workers() - 1)?;
        self.check_part("sequence", parts.sequence, self.sequences() - 1)?;
        let geometry = &self.geometry;
        Ok(geometry.time_bits(parts.tick)
            | geometry.worker.put(parts.worker)
            | geometry.sequence.put(parts.sequence)
            | (parts.random & geometry.random_mask))
    }

    /// Returns the parts of an ID, or [`Error::ImpossibleId`] if its reserved bits are not the layout's.
    pub fn unpack(&self, id: u64) -> Result<Parts, Error> {
        let geometry = &self.geometry;
        Ok(Parts {
            tick: self.tick_of(id)?,
            worker: geometry.worker.get(id),
            sequence: geometry.sequence.get(id),
            random: id & geometry.random_mask,
        })
    }

    /// Returns the tick of an ID, with the checks of [`Layout::unpack`].
    pub fn tick_of(&self, id: u64) -> Result<u64, Error> {
        let tick = self.geometry.turn(self.geometry.timestamp.get(id), id);
        if id & self.geometry.fixed_mask != self.geometry.fixed || tick > self.geometry.last_tick {
            return Err(self.impossible(id));
        }
        Ok(tick)
    }

    /// Returns which node has the worker of an ID; `node` is any node of the deployment. Returns None if the worker is left over,
    /// if there are fewer workers than nodes, or if the layout is read-only.
    ///
    /// # Errors
    /// [`Error::ImpossibleId`], as for [`Layout::unpack`].
    pub fn node_of(&self, id: u64, node: Node) -> Result<Option<u32>, Error> {
        let worker = self.unpack(id)?.worker;
        Ok(node.holder_of(worker, self.workers()).filter(|_| self.generates))
    }

    /// Returns every named number of a possible ID, the most significant first. The timestamp counts ticks.
    pub fn numbers(&self, id: u64) -> Vec<(&str, u64)> {
        let mut numbers: Vec<(&str, u64)> = Vec::new();
        for (field, bits) in self.fields_with_bits() {
            let part = match field.role {
                Role::Reserved { .. } => continue,
                Role::Timestamp { .. } => self.geometry.turn(bits.get(id), id),
                _ => bits.get(id),
            };
            match numbers.iter_mut().find(|(name, _)| *name == field.name) {
                Some((_, number)) => *number = *number << bits.width | part,
                None => numbers.push((&field.name, part)),
            }
        }
        numbers
    }

    /// Returns the ID of a tick with these numbers; fields that are not named are 0. The inverse of [`Layout::numbers`].
    ///
    /// # Errors
    /// [`Error::UnknownField`], [`Error::PartOutOfRange`], and [`Error::OtherTick`] when `numbers` names a timestamp that
    /// is not the tick.
    pub fn make(&self, tick: u64, numbers: &BTreeMap<String, u64>) -> Result<u64, Error> {
        self.check_part("timestamp", tick, self.last_tick())?;
        // Before anything is copied, because there may be any number of unknown ones.
        let is_known = |field: &&Field| !matches!(field.role, Role::Reserved { .. });
        let mut known: Vec<_> = self.fields.iter().filter(is_known).map(|field| field.name.as_ref()).collect();
        known.dedup();
        if let Some(name) = numbers.keys().find(|name| !known.contains(&name.as_str())) {
            let field = name.chars().take(LONGEST_NAME).collect();
            return Err(Error::UnknownField { layout: self.name.clone(), field, known: known.join(", ") });
        }
        let mut id = self.geometry.fixed;
        // If several fields have the same name, they are filled from the least significant one up.
        let mut rest = numbers.clone();
        for (field, bits) in self.fields_with_bits().collect::<Vec<_>>().into_iter().rev() {
            if matches!(field.role, Role::Reserved { .. }) {
                continue;
            }
            let Some(number) = rest.get_mut(field.name.as_ref()) else { continue };
            if matches!(field.role, Role::Timestamp { .. }) {
                if *number != tick {
                    return Err(Error::OtherTick { layout: self.name.clone(), number: *number, tick });
                }
            } else {
                id |= bits.put(*number);
                *number = if bits.width == 64 { 0 } else { *number >> bits.width };
            }
        }
        for (name, &number) in numbers {
            let bits: u32 = self.fields_with_bits().filter(|(f, _)| f.name == *name).map(|(_, bits)| bits.width).sum();
            self.check_part(name.clone(), number, Bits { shift: 0, width: bits }.max())?;
        }
        Ok(id | self.geometry.timestamp.put(self.geometry.turn(tick, id)))
    }

    /// Shifts the caller's number to the tag field's bits.
    pub fn tag_bits(&self, tag: i64) -> Result<u64, Error> {
        if !self.has_tag() {
            return Err(Error::NoTag { layout: self.name.clone() });
        }
        let max = self.geometry.tag.max();
        match u64::try_from(tag) {
            Ok(tag) if tag <= max => Ok(self.geometry.tag.put(tag)),
            _ => Err(Error::TagOutOfRange { layout: self.name.clone(), tag, max }),
        }
    }

    /// Returns the smallest ID of the tick that holds the instant.
    pub fn min_at(&self, at: i64) -> Result<u64, Error> {
        Ok(self.smallest_of(self.ordered_ticks()?.tick_at(at, &self.name)?))
    }

    /// Returns the largest ID of the tick that holds the instant.
    pub fn max_at(&self, at: i64) -> Result<u64, Error> {
        Ok(self.largest_of(self.ordered_ticks()?.tick_at(at, &self.name)?))
    }

    /// Returns the smallest and the largest ID whose ticks overlap a span, as bigints, or None if there is none.
    ///
    /// It does not matter whether the span includes its first instant, because in both cases it overlaps the tick that contains
    /// `from`. Time before the epoch and after the last tick does not count. An open upper end extends to the last instant up to
    /// which bigints sort by time.
    ///
    /// # Errors
    /// [`Error::NotTimeOrdered`]. In a layout whose bigints turn negative, [`Error::InstantOutOfRange`] if an end is after that
    /// last instant.
    pub fn ids_during(&self, from: Bound<i64>, to: Bound<i64>) -> Result<Option<(i64, i64)>, Error> {
        let ticks = self.ordered_ticks()?;
        if let Some((first, last)) = instants(from, to)
            && ticks.last < self.last_tick()
        {
            ticks.tick_at(first.max(ticks.epoch), &self.name)?;
            if to != Bound::Unbounded {
                ticks.tick_at(last.max(ticks.epoch), &self.name)?;
            }
        }
        let ids = |(first, last)| (self.smallest_of(first) as i64, self.largest_of(last) as i64);
        Ok(ticks.during(from, to).map(ids))
    }

    #[inline]
    pub(crate) fn smallest_of(&self, tick: u64) -> u64 {
        self.geometry.time_bits(tick)
    }

    #[inline]
    pub(crate) fn largest_of(&self, tick: u64) -> u64 {
        self.smallest_of(tick) | !(self.geometry.timestamp.mask() | self.geometry.fixed_mask)
    }

    pub(crate) fn fields_with_bits(&self) -> impl Iterator<Item = (&Field, Bits)> {
        self.fields.iter().scan(self.geometry.width, |shift, field| {
            let width = u32::from(field.bits);
            *shift -= width;
            Some((field, Bits { shift: *shift, width }))
        })
    }

    fn check_part(&self, part: impl Into<Cow<'static, str>>, number: u64, max: u64) -> Result<(), Error> {
        if number > max {
            return Err(Error::PartOutOfRange { layout: self.name.clone(), part: part.into(), number, max });
        }
        Ok(())
    }

    #[cold]
    fn impossible(&self, id: u64) -> Error {
        let too_wide = self.geometry.width < 64 && id >> self.geometry.width != 0;
        let field = self.fields_with_bits().find_map(|(field, bits)| match field.role {
            Role::Reserved { value } if bits.get(id) != value => Some((field.name.clone(), bits.get(id), value)),
            _ => None,
        });
        Error::ImpossibleId { layout: self.name.clone(), id: id as i64, width: self.width(), too_wide, field }
    }
}
