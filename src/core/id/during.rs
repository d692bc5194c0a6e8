//! The IDs of a span of time.

use crate::{Error, Layout};
use std::ops::Bound;

impl Layout {
    /// Returns the smallest and the largest ID whose ticks overlap a span, as a bigint holds them; none if no ID does.
    ///
    /// Whether the span includes its first instant does not matter: either way it overlaps the tick that holds `from`.
    /// Time before the epoch and after the last tick does not count. An open upper end reaches to the last instant up to
    /// which the order of bigint is the order of time.
    ///
    /// # Errors
    /// [`Error::NotTimeOrdered`]; in a layout whose bigints turn negative, [`Error::InstantOutOfRange`] when an end lies
    /// past that last instant.
    pub fn ids_during(&self, from: Bound<i64>, to: Bound<i64>) -> Result<Option<(i64, i64)>, Error> {
        let last = self.last_ordered_tick().ok_or_else(|| Error::NotTimeOrdered { layout: self.name.clone() })?;
        let turns_negative = last < self.last_tick();
        let first_tick = match from {
            Bound::Unbounded => 0,
            Bound::Included(at) | Bound::Excluded(at) if at < self.epoch => 0,
            Bound::Included(at) | Bound::Excluded(at) if turns_negative => self.ordered_tick_at(at)?,
            Bound::Included(at) | Bound::Excluded(at) => match self.tick_at(at) {
                Ok(tick) => tick,
                Err(_) => return Ok(None),
            },
        };
        let last_tick = match last_instant(to) {
            _ if to == Bound::Unbounded => last,
            None => return Ok(None),
            Some(at) if at < self.epoch => return Ok(None),
            Some(at) if turns_negative => self.ordered_tick_at(at)?,
            Some(at) => self.tick_at(at).unwrap_or(last),
        };
        if first_tick > last_tick {
            return Ok(None);
        }
        let (first, last) = (self.smallest_of(first_tick), self.largest_of(last_tick));
        Ok(Some((first as i64, last as i64)))
    }
}

/// The last instant of a span that ends at `to`; none if no instant is before it.
pub(crate) fn last_instant(to: Bound<i64>) -> Option<i64> {
    match to {
        Bound::Unbounded => Some(i64::MAX),
        Bound::Included(at) => Some(at),
        Bound::Excluded(at) => at.checked_sub(1),
    }
}
