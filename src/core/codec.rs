//! IDs from and to their parts.

use crate::bits::Bits;
use crate::{Error, Field, Layout, Role};

/// The numbers inside an ID. The worker is the whole worker number, whatever fields it is spread over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// Ticks since the epoch.
    pub tick: u64,
    /// Worker number.
    pub worker: u64,
    /// Sequence number.
    pub sequence: u64,
    /// Random bits at their place in the ID; bits elsewhere are not looked at.
    pub random: u64,
}

impl Layout {
    /// The ID with these parts. A part that its field cannot hold is [`Error::PartOutOfRange`].
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

    /// The parts of an ID. One whose reserved bits are not as the layout has them is [`Error::ImpossibleId`].
    pub fn unpack(&self, id: u64) -> Result<Parts, Error> {
        let geometry = &self.geometry;
        Ok(Parts {
            tick: self.tick_of(id)?,
            worker: geometry.worker.get(id),
            sequence: geometry.sequence.get(id),
            random: id & geometry.random_mask,
        })
    }

    /// The tick of an ID, checked as by [`Layout::unpack`].
    pub fn tick_of(&self, id: u64) -> Result<u64, Error> {
        if id & self.geometry.fixed_mask != self.geometry.fixed {
            return Err(self.impossible(id));
        }
        Ok(self.geometry.turn(self.geometry.timestamp.get(id)))
    }

    /// Every named field of a possible ID with its number, most significant field first; a timestamp as its tick.
    pub fn numbers(&self, id: u64) -> impl Iterator<Item = (&Field, u64)> {
        self.placed_fields().filter_map(move |(field, bits)| match field.role {
            Role::Reserved { .. } => None,
            Role::Timestamp { .. } => Some((field, self.geometry.turn(bits.get(id)))),
            _ => Some((field, bits.get(id))),
        })
    }

    /// The smallest ID of the tick that holds the instant.
    pub fn min_at(&self, at: i64) -> Result<u64, Error> {
        Ok(self.geometry.time_bits(self.ordered_tick_at(at)?))
    }

    /// The largest ID of the tick that holds the instant.
    pub fn max_at(&self, at: i64) -> Result<u64, Error> {
        let free = !(self.geometry.timestamp.mask() | self.geometry.fixed_mask);
        Ok(self.min_at(at)? | free)
    }

    fn placed_fields(&self) -> impl Iterator<Item = (&Field, Bits)> {
        self.fields.iter().scan(self.geometry.width, |shift, field| {
            let width = u32::from(field.bits);
            *shift -= width;
            Some((field, Bits { shift: *shift, width }))
        })
    }

    fn check_part(&self, part: &'static str, number: u64, max: u64) -> Result<(), Error> {
        if number > max {
            return Err(Error::PartOutOfRange { layout: self.name.clone(), part, number, max });
        }
        Ok(())
    }

    #[cold]
    fn impossible(&self, id: u64) -> Error {
        let above = self.geometry.width < 64 && id >> self.geometry.width != 0;
        let field = self.placed_fields().find_map(|(field, bits)| match field.role {
            Role::Reserved { value } if bits.get(id) != value => Some((field.name.clone(), bits.get(id), value)),
            _ => None,
        });
        Error::ImpossibleId { layout: self.name.clone(), id: id as i64, width: self.width(), above, field }
    }
}
