//! Filters by time as ranges of IDs: which IDs lie on one side of an instant.

use crate::{Error, Layout};

/// IDs without a hole: each number from the lowest to the highest is a possible ID, and the order of the numbers is the order of
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContiguousIds {
    /// The first ID of the first tick.
    pub lowest: i64,
    /// The last ID of the last tick up to which bigints sort by time.
    pub highest: i64,
    /// Whether later IDs are possible, which are negative.
    pub turns_negative: bool,
}

impl Layout {
    /// Returns the layout's IDs if a range of them is a range of time, so that no reserved bit lies between bits that vary.
    pub fn contiguous_ids(&self) -> Option<ContiguousIds> {
        let last = self.last_ordered_tick()?;
        let below_time = (1 << self.geometry.timestamp.shift) - 1;
        (self.geometry.fixed_mask & below_time == 0).then(|| ContiguousIds {
            lowest: self.smallest_of(0) as i64,
            highest: self.largest_of(last) as i64,
            turns_negative: last < self.last_tick(),
        })
    }

    /// Returns the smallest ID whose tick begins at an instant or after it, or None if there is no such ID among the ticks up to
    /// which bigints sort by time. The following functions do the same.
    ///
    /// # Errors
    /// [`Error::NotTimeOrdered`]
    #[inline]
    pub fn since(&self, at: i64) -> Result<Option<u64>, Error> {
        Ok(self.ordered_ticks()?.since(at).map(|tick| self.smallest_of(tick)))
    }

    /// Returns the smallest ID whose tick begins after an instant.
    #[inline]
    pub fn after(&self, at: i64) -> Result<Option<u64>, Error> {
        Ok(self.ordered_ticks()?.after(at).map(|tick| self.smallest_of(tick)))
    }

    /// Returns the largest ID whose tick begins at an instant or before it.
    #[inline]
    pub fn until(&self, at: i64) -> Result<Option<u64>, Error> {
        Ok(self.ordered_ticks()?.until(at).map(|tick| self.largest_of(tick)))
    }

    /// Returns the largest ID whose tick begins before an instant.
    #[inline]
    pub fn before(&self, at: i64) -> Result<Option<u64>, Error> {
        Ok(self.ordered_ticks()?.before(at).map(|tick| self.largest_of(tick)))
    }
}
