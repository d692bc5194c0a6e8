//! How a session takes blocks from the lanes of a tick.
//!
//! A session takes from its own lane at the step of the clock. If that lane is used up there, the session takes from the lanes at
//! the places above it, and in the next step from the lowest place on. So its IDs rise, and a session that is alone reaches the
//! limit of all lanes. If IDs are not in the order of time, the session takes from all other lanes. The cursors keep sessions apart
//! that take from one lane.

use super::block::Block;
use super::path::Path;
use crate::Lanes;
use crate::cursors::Cursors;
use crate::layout::MAX_STEP_MICROS;

/// How far a session may be ahead of the clock within a tick, in microseconds; at least a step. Without a limit, several busy
/// sessions would run ahead of the clock by different amounts, insert between each other's IDs, and leave index pages half empty.
const PACE_MICROS: u64 = 256;
/// The same for a session that has made few IDs in the tick. So single inserts rarely wait beside a bulk load that keeps a lane
/// ahead of the clock.
const PACE_OF_FEW_MICROS: u64 = 2 * PACE_MICROS;
/// So many IDs in a tick are not few.
const BULK_IDS_PER_TICK: u64 = 8;
/// If steps last longer than this, in microseconds, sessions do not keep pace, because they would have to wait for each ID.
const LONGEST_STEP_MICROS: u64 = 1000;

/// Why a session takes no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// All IDs of the tick that the session may take are taken.
    UsedUp,
    /// The session is far enough ahead of the clock; `until` is how many microseconds into the tick to ask again.
    Pace { until: u64 },
    /// The lane's IDs are taken further ahead of the clock than sessions keep pace: up to this tick, and to so many microseconds into
    /// it, less the pace.
    Behind { tick: u64, into: u64 },
    /// The cursors do not count any more.
    Dropped,
}

/// A tick as its lanes see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tick {
    pub number: u64,
    /// In microseconds.
    pub length: u64,
    /// How many microseconds of it have passed.
    pub passed: u64,
    /// How many IDs the session has made in it.
    pub made: u64,
    /// The tick-tock bit.
    pub bit: u64,
}

/// How many IDs a session has made lately.
#[derive(Debug, Clone, Copy, Default)]
struct Recent {
    since: i64,
    made_by_then: u64,
    before: u64,
}

impl Recent {
    /// Returns how many IDs the session has made in the last 16 microseconds, or a little more, of `issued` ones up to `now`.
    fn count(&mut self, now: i64, issued: u64) -> u64 {
        let elapsed = now.wrapping_sub(self.since) as u64;
        if elapsed >= MAX_STEP_MICROS {
            self.before = if elapsed < 2 * MAX_STEP_MICROS { issued - self.made_by_then } else { 0 };
            (self.since, self.made_by_then) = (now, issued);
        }
        self.before.max(issued - self.made_by_then)
    }
}

/// A lane at a step.
#[derive(Debug, Clone, Copy)]
struct Spot {
    step: u64,
    lane: u64,
    cursor: u64,
}

/// A session's knowledge of the lanes.
#[derive(Debug, Clone)]
pub(super) struct BlockTaker {
    pub lanes: Lanes,
    pub path: Path,
    /// The number of the session's own lane.
    pub own: u64,
    // The step and the lane of the last block of this tick.
    step: u64,
    lane: u64,
    recent: Recent,
}

impl BlockTaker {
    /// `own` is the number of the session's own lane.
    pub fn new(lanes: &Lanes, path: Path, own: u64) -> Self {
        Self { lanes: *lanes, path, own, step: 0, lane: own, recent: Recent::default() }
    }

    /// Begins another tick.
    pub fn enter_tick(&mut self) {
        (self.step, self.lane) = (0, self.own);
    }

    /// Takes a block at an instant, up to which the session has issued so many IDs.
    pub fn take(&mut self, tick: &Tick, cursors: &impl Cursors, (now, issued): (i64, u64)) -> Result<Block, Stop> {
        let most = match self.lanes.most_of_session(tick.length as i64) {
            Some(most) if tick.made >= most => return Err(Stop::UsedUp),
            Some(most) => most - tick.made,
            None => u64::MAX,
        };
        let wanted = self.recent.count(now, issued).clamp(1, most);
        let Lanes { ids_per_step, .. } = self.lanes;
        let present = mul_div(tick.passed, self.lanes.steps, tick.length);
        let base = tick.number * self.lanes.size();
        loop {
            let Spot { step, lane, cursor } = self.find(tick, cursors, present)?;
            self.keep_pace(tick, step, present)?;
            let end = base + (step + 1) * ids_per_step;
            let first = cursor.max(base + step * ids_per_step);
            let count = wanted.min(end - first);
            debug_assert!(count > 0 && cursor <= first, "a block is not empty, and lies above what was taken");
            debug_assert!(first + count <= base + self.lanes.size(), "a block lies in its tick");
            if !cursors.swap(lane, tick.bit, cursor, first + count) {
                continue;
            }
            (self.step, self.lane) = (step, lane);
            if !cursors.are_current() {
                return Err(Stop::Dropped);
            }
            return Ok(self.block(tick, lane, first - base, count));
        }
    }

    fn block(&self, tick: &Tick, lane: u64, position: u64, count: u64) -> Block {
        let step_end = mul_div_ceil(position / self.lanes.ids_per_step + 1, tick.length, self.lanes.steps);
        Block::new(&self.path, self.lanes.number_at(lane, tick.number, position), count, step_end)
    }

    /// Finds the lane and the step of the next block.
    fn find(&self, tick: &Tick, cursors: &impl Cursors, present: u64) -> Result<Spot, Stop> {
        let base = tick.number * self.lanes.size();
        let end = base + self.lanes.size();
        let own = cursors.load(self.own, tick.bit);
        if own > end {
            let (number, position) = ((own - 1) / self.lanes.size(), (own - 1) % self.lanes.size());
            let step = position / self.lanes.ids_per_step;
            let into = if self.has_pace(tick) { self.before(tick, step) } else { 0 };
            return Err(Stop::Behind { tick: number, into });
        }
        // The session has not left the step of its last block, or begins with its own lane at the clock's step.
        let (step, lane) = if self.step >= present { (self.step, self.lane) } else { (present, self.own) };
        let cursor = if lane == self.own { own } else { cursors.load(lane, tick.bit) };
        if cursor < base + (step + 1) * self.lanes.ids_per_step {
            return Ok(Spot { step, lane, cursor });
        }
        self.find_another(tick, cursors, (step, lane)).ok_or(Stop::UsedUp)
    }

    /// How many places a lane lies behind the beginning of the step, or behind the session's own lane if IDs are not in order.
    fn distance(&self, lane: u64, tick: u64, step: u64) -> u64 {
        let place = self.lanes.place(lane, tick, step);
        let first = if self.lanes.are_ordered { 0 } else { self.lanes.place(self.own, tick, step) };
        place.wrapping_sub(first) % self.lanes.count
    }

    /// Finds the nearest place behind a used up one that has IDs, in one pass over all lanes.
    fn find_another(&self, tick: &Tick, cursors: &impl Cursors, (step, lane): (u64, u64)) -> Option<Spot> {
        let Lanes { ids_per_step, steps, count, .. } = self.lanes;
        let base = tick.number * self.lanes.size();
        let used_up = self.distance(lane, tick.number, step);
        let at = |lane| {
            let cursor = cursors.load(lane, tick.bit);
            let mut open = cursor.saturating_sub(base) / ids_per_step;
            if open <= step {
                open = if self.distance(lane, tick.number, step) <= used_up { step + 1 } else { step };
            }
            // A lane at the end of this tick, or beyond it, has no step with IDs of it.
            (open < steps).then_some(Spot { step: open, lane, cursor })
        };
        (0..count).filter_map(at).min_by_key(|spot| (spot.step, self.distance(spot.lane, tick.number, spot.step)))
    }

    const fn has_pace(&self, tick: &Tick) -> bool {
        tick.length / self.lanes.steps <= LONGEST_STEP_MICROS
    }

    /// Returns how many microseconds into the tick a step begins, less the pace.
    fn before(&self, tick: &Tick, step: u64) -> u64 {
        mul_div_ceil(step, tick.length, self.lanes.steps).saturating_sub(PACE_OF_FEW_MICROS)
    }

    /// Lets the session wait if a step is too far ahead of the clock.
    fn keep_pace(&self, tick: &Tick, step: u64, present: u64) -> Result<(), Stop> {
        if !self.has_pace(tick) {
            return Ok(());
        }
        let steps = self.lanes.steps;
        let ahead = |most| mul_div(most, steps, tick.length).max(1);
        // A lane that is used up at the limit continues one step later, and steps are rounded.
        if step > present + ahead(PACE_OF_FEW_MICROS) + 2 {
            return Err(Stop::Behind { tick: tick.number, into: self.before(tick, step - 1) });
        }
        let ahead = ahead(if tick.made < BULK_IDS_PER_TICK { PACE_OF_FEW_MICROS } else { PACE_MICROS });
        if step <= present + ahead {
            return Ok(());
        }
        // After this wait, several steps are open, so that the session does not wait for each one.
        Err(Stop::Pace { until: mul_div_ceil(step - ahead + ahead / 4, tick.length, steps) })
    }
}

/// Returns `number × factor / divisor`, rounded down.
fn mul_div(number: u64, factor: u64, divisor: u64) -> u64 {
    // In ticks of several hours, the product needs more than 64 bits. A 128-bit division takes many times as long.
    match number.checked_mul(factor) {
        Some(product) => product / divisor,
        None => (u128::from(number) * u128::from(factor) / u128::from(divisor)) as u64,
    }
}

/// Returns `number × factor / divisor`, rounded up.
fn mul_div_ceil(number: u64, factor: u64, divisor: u64) -> u64 {
    match number.checked_mul(factor) {
        Some(product) => product.div_ceil(divisor),
        None => (u128::from(number) * u128::from(factor)).div_ceil(u128::from(divisor)) as u64,
    }
}
