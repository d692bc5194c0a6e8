//! Shared memory that sessions use without a lock: the era, announced watermarks, and the anchors of flake's time.

use crate::instant::MIN_INSTANT;
use crate::sync::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Shared memory that sessions use without a lock.
#[repr(C)]
#[derive(Debug)]
pub struct Shared {
    era: AtomicU64,
    generations: [OfGeneration; 2],
    /// How many sessions make IDs or ask for watermarks.
    pub sessions: AtomicU32,
    /// How many lines have the cursors of layouts.
    pub lines: AtomicU64,
}

/// The numbers that exist once for each generation, and only rise.
#[repr(C)]
#[derive(Debug)]
struct OfGeneration {
    /// The highest announced watermark. No ID is made in a tick that has ended by then.
    announced: AtomicI64,
    /// Of layouts and of snos: flake's time − half of the steady clock's reading; [`MIN_INSTANT`] if the clock is flake's time.
    anchors: [AtomicI64; 2],
}

impl Default for Shared {
    fn default() -> Self {
        let beginning = || AtomicI64::new(MIN_INSTANT);
        let generation = || OfGeneration { announced: beginning(), anchors: [beginning(), beginning()] };
        Self {
            era: AtomicU64::new(0),
            generations: [generation(), generation()],
            sessions: AtomicU32::new(0),
            lines: AtomicU64::new(0),
        }
    }
}

/// The generation of an era, 0 or 1.
#[inline]
pub const fn generation_of(era: u64) -> usize {
    (era & 1) as usize
}

impl Shared {
    /// The current era; 0 before the ledger has begun.
    #[inline]
    pub fn era(&self) -> u64 {
        self.era.load(Ordering::SeqCst)
    }

    /// Begins an era of a generation. The caller holds the ledger's lock, and has changed everything else before.
    pub fn begin_era(&self, generation: usize) {
        let number = (self.era.load(Ordering::Relaxed) >> 1) + 1;
        debug_assert!(generation < 2, "there are two generations");
        self.era.store(number << 1 | generation as u64, Ordering::SeqCst);
    }

    /// The highest watermark that was announced in an era's generation.
    #[inline]
    pub fn announced(&self, era: u64) -> &AtomicI64 {
        &self.generations[generation_of(era)].announced
    }

    #[inline]
    pub(super) fn anchor(&self, era: u64, of_snos: bool) -> &AtomicI64 {
        &self.generations[generation_of(era)].anchors[usize::from(of_snos)]
    }

    /// Returns flake's time in an era, of layouts or of snos. While IDs do not lead the clock, the steady clock is not read.
    #[inline]
    pub fn time(&self, era: u64, of_snos: bool, clock: i64, monotonic: impl FnOnce() -> i64) -> i64 {
        let anchor = self.anchor(era, of_snos);
        let known = anchor.load(Ordering::Relaxed);
        if known == MIN_INSTANT { clock } else { leading(anchor, known, clock, monotonic()) }
    }

    /// Clears the anchors of a generation, before it is in force.
    pub(super) fn clear_anchors(&self, generation: usize) {
        for anchor in &self.generations[generation].anchors {
            anchor.store(MIN_INSTANT, Ordering::SeqCst);
        }
    }
}

/// Returns flake's time, and clears the anchor if the clock has caught up.
#[cold]
fn leading(anchor: &AtomicI64, known: i64, clock: i64, monotonic: i64) -> i64 {
    let time = known.saturating_add(monotonic / 2);
    if time <= clock {
        // If this fails, another session has cleared or raised it.
        let _ = anchor.compare_exchange(known, MIN_INSTANT, Ordering::SeqCst, Ordering::Relaxed);
    }
    time.max(clock)
}
