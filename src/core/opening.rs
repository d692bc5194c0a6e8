//! Opening the ledger: what a server that starts, or is promoted, has to be above.

use crate::marks::KnownMark;
use crate::record::{ExitNote, Record};
use crate::timeline::MARGIN;
use crate::{Ledger, Node};

/// What is known when the ledger is opened.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// The present instant.
    pub now: i64,
    /// When the server started, if that is known.
    pub started_at: Option<i64>,
    /// The node in force.
    pub node: Node,
    /// The timeline of the WAL; 0 on a standby.
    pub wal_timeline: u32,
    /// What the page of a database says of the node.
    pub known: Option<KnownMark>,
}

impl Opening {
    /// Returns the ledger that continues from the record in the file, if there is one, and the record's exit note as long as
    /// it counts. `boot_id` identifies the run of the operating system.
    pub fn ledger(&self, record: Option<Record>, boot_id: Option<&str>) -> (Ledger, Option<ExitNote>) {
        let new = Ledger::new(self.started_at.unwrap_or(self.now));
        // Another server that was the primary under this number may go on unnoticed for as long.
        let overlap = self.now.saturating_add(MARGIN);
        let (ledger, exit_note) = match record {
            None if self.known.is_some_and(|known| known.is_listed) => (new.raised_to(overlap), None),
            None => (new, None),
            // A copy of another node's file says nothing of this node.
            Some(record) if !record.is_of(self.node) => (new, None),
            Some(record) if self.is_of_another_server(&record) => {
                (Ledger::inherited(record.timeline()).raised_to(overlap), None)
            }
            Some(record) => {
                let exit_note = record.exit_note.clone().filter(|note| Some(note.boot_id.as_str()) == boot_id);
                let free_from = exit_note.as_ref().map(|note| note.free_from);
                (Ledger::reopened(record.timeline(), free_from), exit_note)
            }
        };
        let raised = self.raised(ledger);
        (raised, exit_note.filter(|_| raised == ledger))
    }

    /// Returns the ledger above what the page knows of the node, where that is more than the ledger does.
    pub fn raised(&self, ledger: Ledger) -> Ledger {
        match self.known {
            Some(known) if known.instant > ledger.greatest_mark() => ledger.raised_to(known.instant),
            _ => ledger,
        }
    }

    /// Returns whether a record was copied from a server whose WAL this one continues. A standby stays what it is, whatever
    /// timeline it follows, and so does its file.
    const fn is_of_another_server(&self, record: &Record) -> bool {
        self.wal_timeline != 0 && record.wal_timeline != 0 && record.wal_timeline != self.wal_timeline
    }
}
