//! How far the IDs of each lane are taken.
//!
//! A word is linear: the tick's number × the lane's IDs of a tick + how many of them are taken. Everything below the word is taken,
//! by whomever. So whoever stops, exits or dies, no ID is made twice, and nothing is remembered of a session.
//!
//! A word fits into 64 bits. Time, worker and sequence have at most 64, and two lanes or more divide their IDs. A layout has a single
//! lane only if it has fewer than two IDs for each step, so it has at most one in a microsecond, and an instant is 64 bits of
//! microseconds. [`crate::SnoSource`] limits the lanes of snos.
//!
//! Snos have two words in each lane, one for each value of their tick-tock bit. The bit is the last one of a count, which all sessions
//! share, of how often the clock has stepped back.

use crate::sync::{AtomicU64, Ordering};
use crate::{Lanes, SequenceRule};

/// How far the IDs of each lane are taken, as a generator sees it. `bit` is the tick-tock bit, and 0 for layouts.
pub trait Words {
    /// Returns the word of a lane.
    fn load(&self, lane: u64, bit: u64) -> u64;
    /// Replaces the word of a lane if it is `old`. Returns whether it was.
    fn swap(&self, lane: u64, bit: u64, old: u64, new: u64) -> bool;
    /// How often snos have gone back in time.
    fn steps_back(&self) -> u64;
    /// Increases that count by one if it is `known`. Returns whether it was.
    fn step_back(&self, known: u64) -> bool;
    /// Whether the words count. A block that was taken from words that do not count any more is dropped.
    fn are_current(&self) -> bool;
    /// The sequence rule of all generators that use these words.
    fn rule(&self) -> SequenceRule;
}

/// The words of a program that is alone with its memory: threads can share them.
#[derive(Debug)]
pub struct OwnWords {
    words: Box<[[AtomicU64; 2]]>,
    steps_back: AtomicU64,
    rule: SequenceRule,
}

impl OwnWords {
    /// Creates words for lanes that still have all their IDs.
    pub fn new(lanes: &Lanes, rule: SequenceRule) -> Self {
        let words = (0..lanes.count).map(|_| Default::default()).collect();
        Self { words, steps_back: AtomicU64::new(0), rule }
    }
}

impl Words for OwnWords {
    fn load(&self, lane: u64, bit: u64) -> u64 {
        self.words[lane as usize][bit as usize].load(Ordering::Acquire)
    }

    fn swap(&self, lane: u64, bit: u64, old: u64, new: u64) -> bool {
        let word = &self.words[lane as usize][bit as usize];
        word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
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

    fn rule(&self) -> SequenceRule {
        self.rule
    }
}
