//! Converts ticks to instants (microseconds since 1970-01-01T00:00:00Z) and back, in integers.

use crate::layout::ticks::Ticks;
use crate::{Error, Layout};

impl Layout {
    /// The last tick of the layout.
    pub const fn last_tick(&self) -> u64 {
        self.geometry.last_tick
    }

    /// The instant at which a tick of this layout begins.
    pub const fn start_of(&self, tick: u64) -> i64 {
        self.ticks().start_of(tick)
    }

    /// The tick that holds an instant.
    pub fn tick_at(&self, at: i64) -> Result<u64, Error> {
        self.ticks().tick_at(at, &self.name)
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
        self.ordered_ticks()?.tick_at(at, &self.name)
    }

    /// The ticks in which the order of bigint is the order of time.
    pub(crate) fn ordered_ticks(&self) -> Result<Ticks, Error> {
        let last = self.last_ordered_tick().ok_or_else(|| Error::NotTimeOrdered { layout: self.name.clone() })?;
        Ok(Ticks { last, ..self.ticks() })
    }
}
