//! The progress that a slot's owner leaves to the next one.

/// How far a generator has got: what its successor continues from.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// When the tick of the last ID began.
    pub start: i64,
    /// The position after the last ID.
    pub position: u64,
    /// How many IDs remain in the tick.
    pub remaining: u64,
    /// For generators that go back in time: when the latest tick began that the clock stepped back from.
    pub stepped_back_from: i64,
    /// For generators that go back in time: how often the clock stepped back.
    pub drifts: u64,
}

impl Progress {
    /// The generator and its predecessors have used no tick that starts at or after this instant.
    pub const fn free_from(&self) -> i64 {
        (if self.start > self.stepped_back_from { self.start } else { self.stepped_back_from }).saturating_add(1)
    }
}

/// A generator's progress, and for whom it is.
#[derive(Debug, Clone, Copy)]
pub struct FinalProgress {
    /// The key that the generator is stored under.
    pub key: u64,
    /// The era in which the progress was made.
    pub era: u64,
    /// How far the generator got.
    pub progress: Progress,
}

/// How a generator begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Ticks that start at or after this instant are unused.
    pub free_from: i64,
    /// The progress of the share's previous generator, to resume from.
    pub resumed: Option<Progress>,
}

/// How many generators of a slot have their progress stored one by one.
const MAX_GENERATORS: usize = 8;

/// The progress that the sessions of one slot have left.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotProgress {
    era: u64,
    count: usize,
    /// Every generator that is not stored has used only ticks that start before this instant.
    floor: i64,
    stored: [(u64, Progress); MAX_GENERATORS],
}

impl SlotProgress {
    /// Returns how a generator with this key begins in an era, using nothing before its floor.
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

    /// Stores the progress of a generator that ends. When there is no room, the oldest progress raises the floor
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

    /// Gives up all time before an instant, for a session that could not store its progress.
    pub fn abandon(&mut self, era: u64, free_from: i64) {
        if self.enter(era) {
            self.floor = self.floor.max(free_from);
            self.count = 0;
        }
    }

    /// Begins an era if it is new; returns false if it is over.
    fn enter(&mut self, era: u64) -> bool {
        if era > self.era {
            *self = Self { era, ..Self::default() };
        }
        era == self.era
    }
}
