//! Lines of shared memory, each with the cursors of one lane.
//!
//! A line has a cursor for each generation and each value of the tick-tock bit of snos. Cursors only rise: a session that was stopped
//! before an acceptance raises a cursor of the generation that it knew, below the floor of that generation's next era.

use crate::ledger::time::shared::generation_of;
use crate::sync::AtomicU64;

/// How many lanes of custom layouts have cursors, in all databases of a server. A layout has at most 32 lanes.
pub const CUSTOM_LINES: usize = 4096;
/// How many lanes of built-in layouts have cursors: all of them, and some of layouts that later versions may have.
pub const BUILT_IN_LINES: usize = 512;
/// How many lanes have cursors.
pub const MOST_LINES: usize = CUSTOM_LINES + BUILT_IN_LINES;

/// The cursors of one lane, in a cache line of their own. The first line of a layout also says what they count.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct LaneCursors {
    cursors: [[AtomicU64; 2]; 2],
    /// In the first line of a layout, how often its snos have gone back in time.
    pub(super) steps_back: AtomicU64,
    /// The key of the layout. Layouts with the same bits share their cursors.
    pub(super) key: AtomicU64,
    /// The database whose layout it is; [`super::claims::BUILT_IN`] for a built-in one.
    pub(super) database: AtomicU64,
    /// How many lanes the layout has; 0 in every line but the first one.
    pub(super) lanes: AtomicU64,
}

impl LaneCursors {
    /// The cursor of an era's generation for a value of the tick-tock bit, which is 0 in layouts.
    #[inline]
    pub fn cursor(&self, era: u64, bit: u64) -> &AtomicU64 {
        &self.cursors[generation_of(era)][(bit & 1) as usize]
    }
}
