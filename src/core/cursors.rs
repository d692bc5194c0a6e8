//! How far the IDs of each lane are taken.
//!
//! A cursor is linear: the tick's number × the lane's IDs of a tick + how many of them are taken. Everything below the cursor is taken,
//! by whomever. So whoever stops, exits or dies, no ID is made twice, and nothing is remembered of a session.
//!
//! A cursor fits into 64 bits. Time, worker and sequence have at most 64, and two lanes or more divide their IDs. A layout has a single
//! lane only if it has fewer than two IDs for each step, so it has at most one in a microsecond, and an instant is 64 bits of
//! microseconds. [`crate::SnoSource`] limits the lanes of snos.
//!
//! Snos have two cursors in each lane, one for each value of their tick-tock bit. The bit is the last one of a count, which all sessions
//! share, of how often the clock has stepped back.

use crate::Lanes;
use crate::sync::{AtomicU64, Ordering};

/// How far the IDs of each lane are taken, as a generator sees it. `bit` is the tick-tock bit, and 0 for layouts.
pub trait Cursors {
    /// Returns the cursor of a lane.
    fn load(&self, lane: u64, bit: u64) -> u64;
    /// Replaces the cursor of a lane if it is `old`. Returns whether it was.
    fn swap(&self, lane: u64, bit: u64, old: u64, new: u64) -> bool;
    /// How often snos have gone back in time.
    fn steps_back(&self) -> u64;
    /// Increases that count by one if it is `known`. Returns whether it was.
    fn step_back(&self, known: u64) -> bool;
    /// Whether the cursors count. A block that was taken from cursors that do not count any more is dropped.
    fn are_current(&self) -> bool;
}

/// The cursors of a program that is alone with its memory: threads can share them.
#[derive(Debug)]
pub struct OwnCursors {
    cursors: Box<[[AtomicU64; 2]]>,
    steps_back: AtomicU64,
}

impl OwnCursors {
    /// Creates cursors for lanes that still have all their IDs.
    pub fn new(lanes: &Lanes) -> Self {
        let cursors = (0..lanes.count).map(|_| Default::default()).collect();
        Self { cursors, steps_back: AtomicU64::new(0) }
    }
}

impl Cursors for OwnCursors {
    fn load(&self, lane: u64, bit: u64) -> u64 {
        self.cursors[lane as usize][bit as usize].load(Ordering::Acquire)
    }

    fn swap(&self, lane: u64, bit: u64, old: u64, new: u64) -> bool {
        let cursor = &self.cursors[lane as usize][bit as usize];
        cursor.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn steps_back(&self) -> u64 {
        self.steps_back.load(Ordering::SeqCst)
    }

    fn step_back(&self, known: u64) -> bool {
        self.steps_back.compare_exchange(known, known + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    fn are_current(&self) -> bool {
        true
    }
}
