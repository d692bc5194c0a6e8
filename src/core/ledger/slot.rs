//! The owner of a slot tells the next owner how far its generator of snos got.
//!
//! Successive owners of a slot have the same lane of the automatic partitions, whose generators go back in time with the clock. So
//! the next owner starts after the last tick of the one before, and knows up to where it may go back.

/// Where a generator stopped, and its successor continues.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// When the tick of the last ID began.
    pub start: i64,
    /// For generators that go back in time: the latest tick from which the clock stepped back.
    pub stepped_back_from: i64,
    /// For generators that go back in time: how often the clock stepped back.
    pub drifts: u64,
}

impl Progress {
    /// Returns the instant from which ticks begin that neither the generator nor its predecessors used.
    pub const fn free_from(&self) -> i64 {
        (if self.start > self.stepped_back_from { self.start } else { self.stepped_back_from }).saturating_add(1)
    }
}

/// The progress of a generator when it ends.
#[derive(Debug, Clone, Copy)]
pub struct FinalProgress {
    /// Whether it can go back in time. Only then does the slot keep its progress.
    pub goes_back: bool,
    /// The era in which it made its IDs.
    pub era: u64,
    /// Where it stopped.
    pub progress: Progress,
}

/// Where a generator starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Ticks that begin at or after this instant are unused.
    pub free_from: i64,
    /// The progress of the generator's predecessor, to resume from.
    pub resumed: Option<Progress>,
}

/// The progress of the generator that goes back in time, of one slot.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotProgress {
    era: u64,
    last: Option<Progress>,
    /// A session that could not store its progress used only ticks that begin before this instant.
    floor: i64,
}

impl SlotProgress {
    /// Returns where the generator starts in an era whose floor is `floor`.
    pub fn start(&self, era: u64, floor: i64) -> Start {
        if self.era != era {
            return Start { free_from: floor, resumed: None };
        }
        match self.last {
            None => Start { free_from: floor.max(self.floor), resumed: None },
            Some(progress) if progress.start >= floor => Start { free_from: floor, resumed: Some(progress) },
            Some(progress) => Start { free_from: floor.max(progress.free_from()), resumed: None },
        }
    }

    /// Stores the progress of a generator that ends, if it can go back.
    pub fn store(&mut self, last: &FinalProgress) {
        let FinalProgress { goes_back, era, progress } = *last;
        if goes_back && self.enter(era) {
            self.last = Some(progress);
        }
    }

    /// Gives up all time before an instant, because a session could not store its progress.
    pub fn abandon(&mut self, era: u64, free_from: i64) {
        if self.enter(era) {
            self.floor = self.floor.max(free_from);
            self.last = None;
        }
    }

    /// Enters an era if it is newer; returns false if it is over.
    fn enter(&mut self, era: u64) -> bool {
        if era > self.era {
            *self = Self { era, ..Self::default() };
        }
        era == self.era
    }
}
