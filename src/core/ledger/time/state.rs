//! The state that sessions share under the ledger's lock. The ledger only computes; `change` puts another one in force.

use crate::ledger::durable::record::{Record, Reserved};
use crate::{Node, Part, Turns};

/// Shared memory that sessions use under the ledger's lock.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    /// The ledger, once it has begun. Only a `Writer` replaces it.
    pub ledger: Option<Ledger>,
    /// Transactions that began after the ledger have this transaction ID or a later one.
    pub first_xid: u64,
    /// The state of the file.
    pub file: FileState,
}

/// The state of the file, as far as this server knows it.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileState {
    /// The number of the last record.
    pub number: u64,
    /// The half that holds the last record.
    pub half: usize,
    /// Whether both halves must be replaced: an earlier start wrote them, perhaps without a flush.
    pub is_old: bool,
    /// Whether the file may contain an acceptance of the clock whose write failed. After a crash it would be in force, and rows could
    /// come below watermarks that were announced since. So no time is granted until a write has succeeded.
    pub is_in_doubt: bool,
}

/// The time that a server has reserved, and the instant above which it makes IDs.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ledger {
    /// A random number that this start has drawn, other than 0.
    pub writer: u64,
    /// The node in force.
    pub node: Node,
    /// The timeline of the WAL on which the ledger began and the one before it, with their turns.
    pub turns: Turns,
    /// Which time is reserved, in the file too.
    pub reserved: Reserved,
    /// No ID of the era is made in a tick that begins before this instant.
    pub floor: i64,
}

impl Ledger {
    /// The part of the node's IDs that is made.
    pub fn part(&self) -> Part {
        Part::in_turn(self.node, self.turn(), self.reserved.generation() as u32)
    }

    /// The turn in force.
    pub fn turn(&self) -> u32 {
        self.turns.last.map_or(0, |last| last.turn)
    }

    /// Returns the ledger after it has counted what another writer had reserved.
    #[must_use]
    pub(crate) fn counting(&self, found: &Reserved) -> Self {
        let new = self.reserving(&self.reserved.merged_with(found));
        Self { floor: new.floor.max(found.until[new.reserved.generation()]), ..new }
    }

    /// Whether a record is by this start, or would change nothing.
    pub(crate) fn has_counted(&self, record: &Record) -> bool {
        record.writer == self.writer || self.counting(&record.reserved) == *self
    }

    /// Whether a page has everything that this server must tell others. A page that does not exist has no writer.
    pub(crate) fn is_in(&self, page: &Record) -> bool {
        page.writer == self.writer && page.reserved.contains(&self.reserved)
    }

    /// Returns the ledger with more reserved time. If the generation changes, everything that may have been used in the new one is
    /// below the floor.
    #[must_use]
    pub(super) fn reserving(&self, reserved: &Reserved) -> Self {
        debug_assert!(reserved.contains(&self.reserved), "reserved time only rises");
        let is_accepted = reserved.acceptances > self.reserved.acceptances;
        Self { reserved: *reserved, floor: if is_accepted { reserved.end() } else { self.floor }, ..*self }
    }

    /// Returns the ledger with the time before an instant reserved in the generation in force.
    #[must_use]
    pub(super) fn granting(mut self, until: i64) -> Self {
        let end = &mut self.reserved.until[self.reserved.generation()];
        *end = until.max(*end);
        self
    }

    /// Returns the ledger that makes no ID in a tick that begins before an instant, in no generation.
    #[must_use]
    pub(super) fn starting_above(mut self, instant: i64) -> Self {
        self.reserved.until = self.reserved.until.map(|until| until.max(instant));
        self.floor = self.floor.max(instant);
        self
    }

    /// Returns the ledger in the other generation.
    #[must_use]
    pub(super) fn accepting(&self) -> Self {
        self.reserving(&Reserved { acceptances: self.reserved.acceptances + 1, ..self.reserved })
    }
}

/// Returns the ledger, if it has begun.
pub const fn in_force(state: &mut State) -> Option<Ledger> {
    state.ledger
}
