//! The IDs of a span of time.

use crate::{Error, Layout};

/// An end of a span; `None` is open.
pub type Bound = Option<i64>;

impl Layout {
    /// The smallest and the largest ID whose ticks overlap a span, as the numbers that a bigint holds; none when
    /// there is no such ID.
    ///
    /// The span begins at `from`, which it may include or not: the tick that holds `from` overlaps it in either case,
    /// since time after `from` is in that tick too. It ends at `to`, which belongs to it if `to_included`. What lies
    /// before the epoch or after the last tick is left out, and so is, of an open end, what lies past the last
    /// instant to which bigints are in the order of time.
    ///
    /// # Errors
    /// [`Error::NotTimeOrdered`]; in a layout whose bigints turn negative, [`Error::InstantOutOfRange`] when an end lies
    /// past that last instant.
    pub fn ids_during(&self, from: Bound, to: Bound, to_included: bool) -> Result<Option<(i64, i64)>, Error> {
        let last = self.last_ordered_tick().ok_or_else(|| Error::NotTimeOrdered { layout: self.name.clone() })?;
        let disordered = last < self.last_tick();
        let first_tick = match from {
            None => 0,
            Some(at) if at < self.epoch => 0,
            Some(at) if disordered => self.ordered_tick_at(at)?,
            Some(at) => match self.tick_at(at) {
                Ok(tick) => tick,
                Err(_) => return Ok(None),
            },
        };
        let last_tick = match to.map(|at| if to_included { Some(at) } else { at.checked_sub(1) }) {
            None => last,
            // Nothing is before the earliest instant.
            Some(None) => return Ok(None),
            Some(Some(at)) if at < self.epoch => return Ok(None),
            Some(Some(at)) if disordered => self.ordered_tick_at(at)?,
            Some(Some(at)) => self.tick_at(at).unwrap_or(last),
        };
        if first_tick > last_tick {
            return Ok(None);
        }
        let (first, last) = (self.smallest_of(first_tick), self.largest_of(last_tick));
        Ok(Some((first as i64, last as i64)))
    }
}
