//! The progress that the owner of a slot leaves to the next owner.
//!
//! Successive owners of a slot have the same share of each tick. The next owner continues after the last ID of the one before, so
//! it need not wait for the next tick.

/// Where a generator stopped, and its successor continues.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// When the tick of the last ID began.
    pub start: i64,
    /// The position in the share after the last ID.
    pub position: u64,
    /// How many IDs are left in the tick.
    pub remaining: u64,
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
    /// The key of the generator.
    pub key: u64,
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

impl Start {
    /// Starts after the predecessor's tick if that reaches into used time, at `skip`. The predecessor did not know of it if it
    /// made its IDs in another database. `length` is a tick's.
    #[must_use]
    pub fn before(self, skip: i64, length: i64) -> Self {
        match self.resumed {
            Some(progress) if progress.start.saturating_add(length) > skip => {
                Self { free_from: self.free_from.max(progress.free_from()), resumed: None }
            }
            _ => self,
        }
    }
}

/// How many generators of a slot have an entry of their own.
const MAX_GENERATORS: usize = 8;

/// The progress of the generators of one slot.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotProgress {
    era: u64,
    count: usize,
    /// Generators without an entry used only ticks that begin before this instant.
    floor: i64,
    stored: [(u64, Progress); MAX_GENERATORS],
}

impl SlotProgress {
    /// Returns where the generator with this key starts in an era whose floor is `floor`.
    pub fn start(&self, era: u64, floor: i64, key: u64) -> Start {
        if self.era != era {
            return Start { free_from: floor, resumed: None };
        }
        match self.stored[..self.count].iter().find(|(of, _)| *of == key) {
            None => Start { free_from: floor.max(self.floor), resumed: None },
            Some((_, progress)) if progress.start >= floor => Start { free_from: floor, resumed: Some(*progress) },
            Some((_, progress)) => Start { free_from: floor.max(progress.free_from()), resumed: None },
        }
    }

    /// Stores the progress of a generator that ends. If no entry is free, the oldest progress is dropped and raises the floor
    /// instead.
    pub fn store(&mut self, last: &FinalProgress) {
        let FinalProgress { key, era, progress } = *last;
        if !self.enter(era) {
            return;
        }
        let index = match self.stored[..self.count].iter().position(|(of, _)| *of == key) {
            Some(index) => index,
            None if self.count < MAX_GENERATORS => {
                self.count += 1;
                self.count - 1
            }
            None => {
                let free_from = |index: &usize| self.stored[*index].1.free_from();
                let oldest = (0..MAX_GENERATORS).min_by_key(free_from).unwrap_or(0);
                let is_oldest = progress.free_from() <= free_from(&oldest);
                self.floor = self.floor.max(progress.free_from().min(free_from(&oldest)));
                if is_oldest {
                    return;
                }
                oldest
            }
        };
        self.stored[index] = (key, progress);
    }

    /// Gives up all time before an instant, because a session could not store its progress.
    pub fn abandon(&mut self, era: u64, free_from: i64) {
        if self.enter(era) {
            self.floor = self.floor.max(free_from);
            self.count = 0;
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
