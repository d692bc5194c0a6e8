//! Converts ticks to instants (microseconds since 1970-01-01T00:00:00Z) and back, in integers.

use crate::{Error, Layout};

impl Layout {
    /// The last tick of the layout.
    pub const fn last_tick(&self) -> u64 {
        self.geometry.last_tick
    }

    /// The instant at which a tick of this layout begins.
    pub const fn start_of(&self, tick: u64) -> i64 {
        // Up to the last tick the sum is an instant, even where the product alone is too large.
        self.epoch.wrapping_add((tick as i64).wrapping_mul(self.tick_length))
    }

    /// The tick that holds an instant.
    pub fn tick_at(&self, at: i64) -> Result<u64, Error> {
        self.tick_within(at, self.last_tick())
    }

    /// The last tick up to which the order of bigint is the order of time; none if it never is. In layouts that use bit
    /// 63 for time, IDs turn negative halfway.
    pub const fn last_ordered_tick(&self) -> Option<u64> {
        let timestamp = self.geometry.timestamp;
        if !self.geometry.time_ordered {
            return None;
        }
        let positive = if timestamp.shift + timestamp.width == 64 { timestamp.max() >> 1 } else { timestamp.max() };
        Some(if positive < self.last_tick() { positive } else { self.last_tick() })
    }

    /// The tick that holds an instant, where the order of bigint is the order of time.
    pub(crate) fn ordered_tick_at(&self, at: i64) -> Result<u64, Error> {
        let last = self.last_ordered_tick().ok_or_else(|| Error::NotTimeOrdered { layout: self.name.clone() })?;
        self.tick_within(at, last)
    }

    /// Returns the tick that holds an instant at which IDs are to be made.
    ///
    /// # Errors
    /// [`Error::InstantOutOfRange`] before the epoch, [`Error::Exhausted`] after the last tick.
    pub fn tick_to_generate_in(&self, now: i64) -> Result<u64, Error> {
        match self.tick_at(now) {
            Err(Error::InstantOutOfRange { end, .. }) if now >= end => Err(self.exhausted()),
            tick => tick,
        }
    }

    /// Returns the error for a clock past the last tick.
    pub fn exhausted(&self) -> Error {
        Error::Exhausted { layout: self.name.clone(), end: self.start_of(self.last_tick()) + self.tick_length }
    }

    fn tick_within(&self, at: i64, last: u64) -> Result<u64, Error> {
        let since_epoch = i128::from(at) - i128::from(self.epoch);
        let tick = since_epoch.div_euclid(i128::from(self.tick_length));
        if (0..=i128::from(last)).contains(&tick) {
            return Ok(tick as u64);
        }
        let (first, end) = (self.epoch, self.start_of(last) + self.tick_length);
        Err(Error::InstantOutOfRange { layout: self.name.clone(), at, first, end })
    }
}
