//! What the owner of a slot leaves to the next owner: how far its generators of snos got.
//!
//! Successive owners of a slot have the same lane of snos, and generators of snos go back in time with the clock. So the next owner
//! starts after the last tick of the one before, and in the automatic partitions it knows up to where it may go back.

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

/// What a generator leaves in its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The words of its lanes say how far it got.
    Nothing,
    /// Its successor may go back in time as it could itself.
    Progress,
    /// Its successor may not go back.
    Instant,
}

/// The progress of a generator when it ends.
#[derive(Debug, Clone, Copy)]
pub struct FinalProgress {
    /// What the slot keeps of it.
    pub kept: Kept,
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

/// The progress of the generators of one slot.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotProgress {
    era: u64,
    /// The progress in the automatic partitions.
    automatic: Option<Progress>,
    /// Generators of other partitions used only ticks that begin before this instant. After a session that could not store its
    /// progress, this holds for the automatic partitions too.
    floor: i64,
}

impl SlotProgress {
    /// Returns where a generator starts in an era whose floor is `floor`.
    pub fn start(&self, era: u64, floor: i64, kept: Kept) -> Start {
        if self.era != era {
            return Start { free_from: floor, resumed: None };
        }
        match self.automatic.filter(|_| kept == Kept::Progress) {
            None => Start { free_from: floor.max(self.floor), resumed: None },
            Some(progress) if progress.start >= floor => Start { free_from: floor, resumed: Some(progress) },
            Some(progress) => Start { free_from: floor.max(progress.free_from()), resumed: None },
        }
    }

    /// Stores the progress of a generator that ends.
    pub fn store(&mut self, last: &FinalProgress) {
        let FinalProgress { kept, era, progress } = *last;
        if kept == Kept::Nothing || !self.enter(era) {
            return;
        }
        match kept {
            Kept::Progress => self.automatic = Some(progress),
            _ => self.floor = self.floor.max(progress.free_from()),
        }
    }

    /// Gives up all time before an instant, because a session could not store its progress.
    pub fn abandon(&mut self, era: u64, free_from: i64) {
        if self.enter(era) {
            self.floor = self.floor.max(free_from);
            self.automatic = None;
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
