//! How time is divided into ticks.

use std::ops::Bound;

use crate::Error;

/// Ticks of one length, from an epoch on. Instants are microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks {
    /// The instant of tick 0.
    pub epoch: i64,
    /// The length of a tick in microseconds.
    pub length: i64,
    /// The last tick.
    pub last: u64,
}

impl Ticks {
    /// The instant at which a tick begins.
    pub const fn start_of(&self, tick: u64) -> i64 {
        // Up to the last tick the sum is an instant, even where the product alone is too large.
        self.epoch.wrapping_add((tick as i64).wrapping_mul(self.length))
    }

    /// The first instant after the last tick.
    pub const fn end(&self) -> i64 {
        self.start_of(self.last) + self.length
    }

    /// The tick that holds an instant, or the nearest one.
    #[inline]
    pub(crate) fn clamped(&self, instant: i64) -> u64 {
        (instant.max(self.epoch).wrapping_sub(self.epoch) as u64 / self.length as u64).min(self.last)
    }

    /// The first tick that begins at an instant or after it.
    #[inline]
    pub(crate) fn since(&self, at: i64) -> Option<u64> {
        let elapsed = at.max(self.epoch).wrapping_sub(self.epoch) as u64;
        Some(elapsed.div_ceil(self.length as u64)).filter(|&tick| tick <= self.last)
    }

    /// The first tick that begins after an instant.
    #[inline]
    pub(crate) fn after(&self, at: i64) -> Option<u64> {
        self.since(at.checked_add(1)?)
    }

    /// The last tick that begins at an instant or before it.
    #[inline]
    pub(crate) fn until(&self, at: i64) -> Option<u64> {
        (at >= self.epoch).then(|| self.clamped(at))
    }

    /// The last tick that begins before an instant.
    #[inline]
    pub(crate) fn before(&self, at: i64) -> Option<u64> {
        self.until(at.checked_sub(1)?)
    }

    /// Returns the tick that holds an instant, or [`Error::InstantOutOfRange`]. `layout` is the name in the error.
    #[inline]
    pub(crate) fn tick_at(&self, at: i64, layout: &str) -> Result<u64, Error> {
        let (first, end) = (self.epoch, self.end());
        if !(first..end).contains(&at) {
            return Err(Error::InstantOutOfRange { layout: layout.to_owned().into(), at, first, end });
        }
        Ok(at.wrapping_sub(first) as u64 / self.length as u64)
    }

    /// Returns the tick that holds an instant at which IDs are to be made.
    ///
    /// # Errors
    /// [`Error::BeforeEpoch`] before the first tick, [`Error::Exhausted`] after the last one.
    pub fn tick_to_generate_in(&self, now: i64, layout: &str) -> Result<u64, Error> {
        if now < self.epoch {
            return Err(Error::BeforeEpoch { layout: layout.to_owned().into(), now, epoch: self.epoch });
        }
        if now >= self.end() { Err(self.exhausted(layout)) } else { self.tick_at(now, layout) }
    }

    /// Returns the error for a clock past the last tick.
    pub fn exhausted(&self, layout: &str) -> Error {
        Error::Exhausted { layout: layout.to_owned().into(), end: self.end() }
    }

    /// Returns the first and the last tick that overlap a span, or None if no tick does.
    pub(crate) fn during(&self, from: Bound<i64>, to: Bound<i64>) -> Option<(u64, u64)> {
        let (from, to) = instants(from, to)?;
        let (first, last) = (self.clamped(from), self.clamped(to));
        (from < self.end() && self.epoch <= to && first <= last).then_some((first, last))
    }
}

/// The first and the last instant of a span, or None if no instant is before its end.
pub(crate) fn instants(from: Bound<i64>, to: Bound<i64>) -> Option<(i64, i64)> {
    let first = match from {
        Bound::Unbounded => i64::MIN,
        Bound::Included(at) | Bound::Excluded(at) => at,
    };
    let last = match to {
        Bound::Unbounded => i64::MAX,
        Bound::Included(at) => at,
        Bound::Excluded(at) => at.checked_sub(1)?,
    };
    Some((first, last))
}
