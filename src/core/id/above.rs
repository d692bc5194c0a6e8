//! Whether new IDs of a layout are above the numbers that a column already contains, and if not, how to get there.

use crate::{Error, Layout};

/// How many layouts are named.
const MOST_NAMED: usize = 100;
/// How long IDs of a layout that is named stay in the order of time, in microseconds: ten years.
const LASTS_MICROS: i64 = 10 * 365 * 24 * 60 * 60 * 1_000_000;

/// The remedy if new IDs of a layout are not above a number.
#[derive(Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The number is an ID of the layout, from a future that the server may skip.
    StartAbove,
    /// IDs of these layouts, and perhaps of others, are above the number.
    Layouts(Vec<String>),
    /// IDs of a layout with an earlier epoch would be above the number.
    EarlierEpoch,
    /// The number is so large that there is no room above it for IDs of the next years.
    NoRoom,
}

impl Layout {
    /// Returns the smallest ID of the tick that an ID belongs to. If the server starts above that instant, it makes no ID below it.
    ///
    /// # Errors
    /// [`Error::NotTimeOrdered`], and the errors of [`Layout::min_at`] where bigints do not sort by time any more.
    pub fn floor(&self, id: u64) -> Result<i64, Error> {
        Ok(self.min_at(self.start_of(self.tick_of(id)?))? as i64)
    }

    /// Returns what to do if a number is above new IDs. `ahead` is how many microseconds a server may skip.
    pub fn remedy<'a>(&self, number: i64, now: i64, ahead: i64, others: impl Iterator<Item = &'a Self>) -> Remedy {
        let end = self.tick_of(number as u64).map(|tick| self.start_of(tick).saturating_add(self.tick_length()));
        if end.is_ok_and(|end| end.saturating_sub(now) <= ahead) {
            return Remedy::StartAbove;
        }
        let lasts = |other: &Self| other.min_at(now.saturating_add(LASTS_MICROS)).is_ok();
        let is_above = |other: &&Self| {
            other.generates && !other.has_tag() && other.min_at(now).is_ok_and(|id| id as i64 > number) && lasts(other)
        };
        let names: Vec<_> = others.filter(is_above).take(MOST_NAMED).map(|other| other.name().to_owned()).collect();
        match names.is_empty() {
            false => Remedy::Layouts(names),
            true if number < i64::MAX / 4 * 3 => Remedy::EarlierEpoch,
            true => Remedy::NoRoom,
        }
    }
}
