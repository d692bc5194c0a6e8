//! Which IDs of a server's own part it has not made. Another server with the same number has made them, or somebody by hand.
//!
//! The cursors of a layout's lanes say up to which tick a server has taken IDs since its start. All IDs of its earlier starts are below
//! the floor, or, if the file was lost, below what the page of their database says. So an ID of its part in a later tick is not its
//! own. In earlier ticks, nothing tells them apart.

use super::claims::last_tick;
use super::line::LaneCursors;
use crate::ledger::durable::record::{Record, Reserved};
use crate::ledger::time::shared::Shared;
use crate::ledger::time::state::Ledger;
use crate::{Lanes, Layout, Numbers};

/// The IDs of a layout that a server has made.
#[derive(Debug)]
pub struct OwnIds<'a> {
    layout: &'a Layout,
    lanes: Lanes,
    floor: i64,
    last: Option<u64>,
}

impl<'a> OwnIds<'a> {
    /// Reads the cursors of a layout. All rows with IDs that are asked for were read before. `era` was read with the ledger under the
    /// ledger's lock, `key` is the key of the cursors, `lanes` are of the ledger's part, and `page` is of the rows' database.
    pub fn read(
        (shared, lines): (&Shared, &[LaneCursors]),
        (ledger, era, page): (&Ledger, u64, &Record),
        (layout, key, lanes): (&'a Layout, u64, Lanes),
    ) -> Self {
        let last = last_tick(shared, lines, key, &lanes, era);
        let of_others = if page.writer == ledger.writer { Reserved::NONE } else { page.reserved };
        let floor = ledger.floor.max(of_others.until[ledger.reserved.generation()]);
        Self { layout, lanes, floor, last }
    }

    /// Whether an ID is of the server's part, and the server has not made it.
    pub fn has_not_made(&self, id: u64) -> bool {
        let Ok(parts) = self.layout.unpack(id) else { return false };
        holds(self.lanes.workers, parts.worker)
            && holds(self.lanes.sequences, parts.sequence)
            && self.layout.start_of(parts.tick) >= self.floor
            && self.last.is_none_or(|last| parts.tick > last)
    }
}

fn holds(numbers: Numbers, number: u64) -> bool {
    number.checked_sub(numbers.first).is_some_and(|place| place < numbers.count)
}
