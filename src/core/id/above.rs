//! Whether the IDs of a layout are above numbers that a column has already, and what helps where they are not.

use crate::{Error, Layout};

/// The remedy where the IDs of a layout are not above a number.
#[derive(Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The number is an ID of the layout, of a time that the server may skip.
    StartAbove,
    /// IDs of these layouts are above it.
    Layouts(Vec<String>),
    /// IDs of a layout with an earlier epoch are above it.
    EarlierEpoch,
    /// Numbers up to there leave no room for IDs of years to come.
    NoRoom,
}

impl Layout {
    /// The smallest ID of the tick that an ID belongs to. From then on, no ID is made below it.
    ///
    /// # Errors
    /// [`Error::NotTimeOrdered`], and the errors of [`Layout::min_at`] after the order of bigint is no longer the order of time.
    pub fn floor(&self, id: u64) -> Result<i64, Error> {
        Ok(self.min_at(self.start_of(self.tick_of(id)?))? as i64)
    }

    /// The remedy where a number is above the IDs that are made now; `ahead` is how many microseconds a server may skip.
    pub fn remedy<'a>(&self, number: i64, now: i64, ahead: i64, others: impl Iterator<Item = &'a Self>) -> Remedy {
        let end = self.tick_of(number as u64).map(|tick| self.start_of(tick).saturating_add(self.tick_length()));
        if end.is_ok_and(|end| end.saturating_sub(now) <= ahead) {
            return Remedy::StartAbove;
        }
        let is_above =
            |other: &&Self| other.generates && !other.has_tag() && other.min_at(now).is_ok_and(|id| id as i64 > number);
        let names: Vec<_> = others.filter(is_above).map(|other| other.name().to_owned()).collect();
        match names.is_empty() {
            false => Remedy::Layouts(names),
            true if number < i64::MAX / 4 * 3 => Remedy::EarlierEpoch,
            true => Remedy::NoRoom,
        }
    }
}
