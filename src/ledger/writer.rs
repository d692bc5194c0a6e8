//! The right to change the ledger: what is in its file comes first, then what is in memory.
#![allow(unsafe_code, reason = "memory that a lock guards")]

use flake_core::record::{ExitNote, Record};
use flake_core::{Ledger, Node};

use super::control::Control;
use super::mark_file::{self, Durability};
use crate::error::Error;
use crate::postgres::lwlock;

/// What the session that writes knows of the file.
#[derive(Default)]
pub struct FileState {
    /// Who writes, and on which timeline of the WAL; none before the ledger is open.
    owner: Option<(Node, u32)>,
    /// The number of the last record.
    record_number: u64,
    /// The half of the file that holds the last record that is on disk.
    durable_half: usize,
    has_exit_note: bool,
}

/// The right to change the ledger, which one session has at a time. It is held while the file is written, so nothing may
/// raise an error of PostgreSQL meanwhile.
pub struct Writer<'a> {
    control: &'a Control,
    _guard: lwlock::Guard<'a>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(control: &'a Control, guard: lwlock::Guard<'a>) -> Self {
        Self { control, _guard: guard }
    }

    #[allow(clippy::mut_from_ref, reason = "this session holds the lock")]
    fn file(&self) -> &mut FileState {
        // SAFETY: this session holds the lock, so no other one uses the cell; no two of these borrows live at a time.
        unsafe { &mut *self.control.file.get() }
    }

    /// Reads the newest record of the file, whoever wrote it, and continues after it.
    pub fn load(&self) -> Result<Option<Record>, Error> {
        Ok(mark_file::load()?.map(|(half, record)| {
            let file = self.file();
            (file.record_number, file.durable_half) = (record.number, half);
            record
        }))
    }

    /// Says in whose name records are written from now on.
    pub fn set_owner(&self, node: Node, wal_timeline: u32) {
        self.file().owner = Some((node, wal_timeline));
    }

    /// Writes the ledger to disk, then puts it in force.
    pub fn replace(&self, ledger: Ledger, exit_note: Option<ExitNote>) -> Result<(), Error> {
        self.store(&ledger, exit_note, Durability::Flushed)?;
        self.control.with_lock(|guarded| {
            guarded.ledger = Some(ledger);
            self.control.window.write(&ledger);
        });
        Ok(())
    }

    /// Withdraws the exit note, if there is one.
    pub fn withdraw_exit_note(&self) -> Result<(), Error> {
        match self.control.ledger() {
            Some(ledger) if self.file().has_exit_note => self.store(&ledger, None, Durability::Buffered),
            _ => Ok(()),
        }
    }

    /// Writes a record of the ledger, never over the last one that is on disk.
    pub fn store(&self, ledger: &Ledger, exit_note: Option<ExitNote>, durability: Durability) -> Result<(), Error> {
        let file = self.file();
        let Some(owner) = file.owner else { unreachable!("the ledger is stored by whoever has opened it") };
        let half = 1 - file.durable_half;
        let has_exit_note = exit_note.is_some();
        let record = Record::new(file.record_number + 1, owner, ledger.timeline(), exit_note);
        mark_file::store(half, &record, durability)?;
        file.record_number += 1;
        file.has_exit_note = has_exit_note;
        if durability == Durability::Flushed {
            file.durable_half = half;
        }
        Ok(())
    }
}
