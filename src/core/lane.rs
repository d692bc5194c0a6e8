//! Lanes: what a server's IDs of a tick are divided into, so that sessions seldom meet.
//!
//! The IDs of the server's part of a tick, in order, are divided into equal *steps* of time, and each step among the lanes. So the IDs of all
//! sessions are in the order of time down to a step instead of a tick, and neighbors in time are neighbors in an index.
//!
//! Sessions share the lanes of a layout. A *cursor* of each lane says how far its IDs are taken ([`crate::Cursors`]), so a session
//! takes IDs by raising the cursor.

use crate::layout::most_steps;
use crate::part::power_of_two;
use crate::{Error, Layout, Numbers, Part};

/// The number of the rule that divides a tick among nodes and lanes. Sessions of one server that follow different rules could make
/// the same IDs. So a released rule never changes, and another rule gets another number.
pub const DIVISION_VERSION: u32 = 5;

/// A lane has about this many IDs in a millisecond, if there are enough. More would not make a session faster.
const IDS_IN_A_MILLISECOND: u64 = 32_768;
/// How many lanes there are at most. Each has a cache line of its own, and a session that needs much may look at all of them.
const MAX_LANES: u64 = 32;

/// The lanes of a part in a layout. Its geometry and the number of nodes alone decide them, never load.
///
/// The IDs of a lane in a tick have *positions*, from 0 to `size() - 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes {
    /// The part's workers.
    pub workers: Numbers,
    /// The part's sequence numbers, for each of these workers.
    pub sequences: Numbers,
    /// How many lanes there are.
    pub count: u64,
    /// How many steps a tick has.
    pub steps: u64,
    /// How many IDs of a step belong to a lane.
    pub ids_per_step: u64,
    /// Whether IDs are in the order of time, so that a session must not go back to an earlier place.
    pub are_ordered: bool,
}

impl Lanes {
    /// Computes the lanes of a part in a layout.
    ///
    /// # Errors
    /// [`Error::TooManyNodes`] if there are fewer workers than nodes, [`Error::TooFewIds`] if the node has fewer IDs in a tick than
    /// parts.
    pub fn new(layout: &Layout, part: Part) -> Result<Self, Error> {
        let (workers, sequences) = part.numbers(layout)?;
        Ok(Self::shared(workers, sequences, layout.tick_length, layout.geometry.time_ordered))
    }

    /// Computes the lanes in some workers and sequence numbers, with ticks of this many microseconds. `are_ordered` is whether IDs
    /// are in the order of time.
    pub fn shared(workers: Numbers, sequences: Numbers, length: i64, are_ordered: bool) -> Self {
        let ids = workers.count * sequences.count;
        let in_a_step = ids / most_steps(length);
        let in_a_millisecond = u128::from(ids) * 1000 / length as u128;
        // If IDs are not in the order of time, only the lane varies the lowest bits of a session's single IDs.
        let enough = if are_ordered { IDS_IN_A_MILLISECOND } else { IDS_IN_A_MILLISECOND / 2 };
        let wanted = (in_a_millisecond / u128::from(enough)).min(MAX_LANES.into()) as u64;
        let count = power_of_two(wanted.max(in_a_step.min(2)).max(1));
        // If IDs are not in the order of time, steps would not order them either.
        let is_one_step = !are_ordered || most_steps(length) == 1;
        let wanted = (if is_one_step { ids } else { in_a_step } / count).max(1);
        // If the number were even, each first ID of a step would be, and a table that is divided by `id % 2` would have an empty
        // half. Where a tick has one step, an ID that is left out is lost.
        let is_made_odd = wanted.is_multiple_of(2) && (!is_one_step || wanted > 2);
        let ids_per_step = if is_made_odd { wanted - 1 } else { wanted };
        let steps = if is_one_step { 1 } else { ids / (count * ids_per_step) };
        debug_assert!(
            ids == 0 || steps > 0 && count.is_power_of_two() && count * steps * ids_per_step <= ids,
            "the lanes lie in the part"
        );
        Self { workers, sequences, count, steps, ids_per_step, are_ordered }
    }

    /// The lane with which the session in the proc of this number begins.
    pub fn of(&self, proc: u32) -> u64 {
        u64::from(proc) % self.count
    }

    /// How many IDs a lane has in a tick, at least 1.
    pub const fn size(&self) -> u64 {
        self.steps * self.ids_per_step
    }

    /// How many IDs the lanes have in a second with ticks of this many microseconds.
    pub const fn ids_per_second(&self, tick_length: i64) -> u128 {
        self.size() as u128 * self.count as u128 * 1_000_000 / tick_length as u128
    }

    /// How many IDs a session takes of a lane in a tick at most. If a tick lasts longer than a second, sessions would wait too long
    /// for the next one, so each leaves something to others.
    pub(crate) const fn most_of_session(&self, tick_length: i64) -> Option<u64> {
        if tick_length <= 1_000_000 {
            return None;
        }
        let eighth = self.size() / 8;
        Some(if eighth == 0 { 1 } else { eighth })
    }

    /// A lane's place in a step. It changes with tick and step: otherwise each first ID of a lane would have the same lowest bits.
    pub const fn place(&self, lane: u64, tick: u64, step: u64) -> u64 {
        lane.wrapping_add(tick).wrapping_add(step) & (self.count - 1)
    }

    /// The number of a position's ID among all IDs that the part has in a tick.
    pub const fn number_at(&self, lane: u64, tick: u64, position: u64) -> u64 {
        debug_assert!(position < self.size() && lane < self.count, "a position lies in its lane");
        let (step, within) = (position / self.ids_per_step, position % self.ids_per_step);
        (step * self.count + self.place(lane, tick, step)) * self.ids_per_step + within
    }
}
