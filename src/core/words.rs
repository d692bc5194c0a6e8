//! How far the IDs of each lane are taken.
//!
//! A word is linear: the tick's number × the lane's IDs of a tick + how many of them are taken. Everything below the word is taken,
//! by whomever. So whoever stops, exits or dies, no ID is made twice, and nothing is remembered of a session.
//!
//! A word fits into 64 bits. Time, worker and sequence have at most 64, and two lanes or more divide their IDs. A layout has a single
//! lane only if it has fewer than two IDs for each step, so it has at most one in a microsecond, and an instant is 64 bits of
//! microseconds.

use crate::sync::{AtomicU64, Ordering};
use crate::{Lanes, SequenceRule};

/// How far the IDs of each lane are taken, as a generator sees it.
pub trait Words {
    /// Returns the word of a lane.
    fn load(&self, lane: u64) -> u64;
    /// Replaces the word of a lane if it is `old`. Returns whether it was.
    fn swap(&self, lane: u64, old: u64, new: u64) -> bool;
    /// Whether the words count. A block that was taken from words that do not count any more is dropped.
    fn are_current(&self) -> bool;
    /// The sequence rule of all generators that use these words.
    fn rule(&self) -> SequenceRule;
}

/// The words of a program that is alone with its memory: threads can share them.
#[derive(Debug)]
pub struct OwnWords {
    words: Box<[AtomicU64]>,
    rule: SequenceRule,
}

impl OwnWords {
    /// Creates words for lanes that still have all their IDs.
    pub fn new(lanes: &Lanes, rule: SequenceRule) -> Self {
        Self { words: (0..lanes.count).map(|_| AtomicU64::new(0)).collect(), rule }
    }
}

impl Words for OwnWords {
    fn load(&self, lane: u64) -> u64 {
        self.words[lane as usize].load(Ordering::Acquire)
    }

    fn swap(&self, lane: u64, old: u64, new: u64) -> bool {
        self.words[lane as usize].compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn are_current(&self) -> bool {
        true
    }

    fn rule(&self) -> SequenceRule {
        self.rule
    }
}
