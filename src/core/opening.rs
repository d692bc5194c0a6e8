//! Opening the ledger: what a server that starts, or is promoted, has to be above.

use crate::marks::KnownMark;
use crate::record::{ExitNote, Owner, Record};
use crate::timeline::MARGIN;
use crate::{Ledger, Node, absent};

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
    /// A number for the memory that begins, if one does.
    pub new_memory: u32,
    /// What the page of a database says of the node.
    pub known: KnownMark,
}

impl Opening {
    /// Returns the ledger that continues from the record in the file, if there is one; in whose name it does; and the
    /// record's exit note as long as that counts. `boot_id` identifies the run of the operating system.
    pub fn ledger(&self, record: Option<Record>, boot_id: Option<&str>) -> (Ledger, Owner, Option<ExitNote>) {
        let own = record.as_ref().filter(|record| record.owner.counts_for(self.node));
        // Another server that was the primary under this number may go on unnoticed for as long.
        let overlap = if absent!(OpeningOverlap) { self.now } else { self.now.saturating_add(MARGIN + 1) };
        let mut owner = Owner {
            node: (self.node.id(), self.node.count()),
            wal_timeline: self.wal_timeline,
            memory: self.new_memory,
            of_others: record.as_ref().map_or(i64::MIN, |record| record.owner.of_others),
        };
        let (ledger, exit_note) = match own {
            // What is not this node's memory is none.
            None => {
                let new = Ledger::new(self.started_at.unwrap_or(self.now));
                (if self.known.is_listed { new.raised_to(overlap) } else { new }, None)
            }
            Some(record) if self.is_of_another_server(record) => {
                (Ledger::inherited(record.timeline()).raised_to(overlap), None)
            }
            Some(record) => {
                owner.memory = record.owner.memory;
                let exit_note = record
                    .exit_note
                    .clone()
                    .filter(|note| Some(note.boot_id.as_str()) == boot_id || absent!(OpeningBoot));
                let free_from = exit_note.as_ref().map(|note| note.free_from);
                (Ledger::reopened(record.timeline(), free_from), exit_note)
            }
        };
        let (raised, owner) = self.raised(ledger, owner);
        (raised, owner, exit_note.filter(|_| raised == ledger || absent!(OpeningNote)))
    }

    /// Returns the ledger above what the page knows of the node. What another memory wrote there, the ledger does not know,
    /// so its floor has to be above. What its own memory wrote, it knows, whatever its floor is.
    pub fn raised(&self, mut ledger: Ledger, mut owner: Owner) -> (Ledger, Owner) {
        let KnownMark { own, inherited, binding, of_others, .. } = self.known;
        owner.of_others = owner.of_others.max(of_others);
        let written = |by_this: bool| {
            let all = own.into_iter().chain(binding).filter(|(_, memory)| (*memory == owner.memory) == by_this);
            all.map(|(instant, _)| instant).max().unwrap_or(i64::MIN)
        };
        let (of_this_memory, of_another) = (written(true), written(false));
        let unknown = of_another.max(inherited);
        if unknown > ledger.floor() && !absent!(OpeningPage) {
            ledger = ledger.raised_to(unknown);
        }
        if of_this_memory > ledger.greatest_mark() && !absent!(OpeningLost) {
            ledger = ledger.raised_to(of_this_memory);
        }
        (ledger, owner)
    }

    /// Returns whether a record may have been copied from a server whose WAL this one continues, or from one of another number
    /// of nodes. A standby stays what it is, whatever timeline it follows, and so does its file; but a base backup of it may
    /// become a primary more than once.
    fn is_of_another_server(&self, record: &Record) -> bool {
        let Owner { node, wal_timeline, .. } = record.owner;
        let is_renumbered = node != (self.node.id(), self.node.count()) && !absent!(OpeningRenumbered);
        let is_promoted = self.wal_timeline != 0 && wal_timeline != self.wal_timeline && !absent!(OpeningPromoted);
        is_renumbered || is_promoted && (wal_timeline != 0 || !absent!(OpeningOfStandby))
    }
}
