//! The right to change the ledger: what is in its file comes first, then what is in memory.
#![allow(unsafe_code, reason = "memory that a lock guards")]

use std::sync::atomic::Ordering;

use flake_core::record::{ExitNote, Owner, Record};
use flake_core::{Ledger, absent};

use super::control::{Control, Guarded};
use super::mark_file::{self, Durability, FileState};
use crate::error::Error;
use crate::postgres::lwlock;

/// The right to change the ledger, which one session has at a time. It is held while the file is written, so nothing may
/// raise an error of PostgreSQL meanwhile.
pub struct Writer<'a> {
    control: &'a Control,
    _guard: lwlock::Guard<'a>,
}

impl Control {
    /// Waits for the right to change the ledger and its file. The wait can be canceled.
    pub fn writer(&self) -> Writer<'_> {
        Writer { control: self, _guard: self.file_lock.take() }
    }

    /// Takes the right to change the ledger and its file if nobody has it.
    pub fn try_writer(&self) -> Option<Writer<'_>> {
        Some(Writer { control: self, _guard: self.file_lock.try_take()? })
    }
}

impl Writer<'_> {
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

    /// Returns in whose name records are written, once the ledger is open.
    pub fn owner(&self) -> Option<Owner> {
        self.file().owner
    }

    /// Says in whose name records are written from now on.
    pub fn set_owner(&self, owner: Owner) {
        self.file().owner = Some(owner);
        self.control.memory.store(owner.memory, Ordering::Release);
        self.control.mark_of_others.fetch_max(owner.of_others, Ordering::AcqRel);
    }

    /// Writes the ledger to disk, then puts it in force.
    pub fn replace(&self, ledger: Ledger, exit_note: Option<ExitNote>) -> Result<(), Error> {
        self.replace_and(ledger, exit_note, |_| {})
    }

    /// The same, with a change of what else the lock guards that no session sees without it.
    pub fn replace_and(
        &self,
        ledger: Ledger,
        exit_note: Option<ExitNote>,
        change: impl FnOnce(&mut Guarded),
    ) -> Result<(), Error> {
        if !absent!(MarkFile) {
            let stored = self.store(&ledger, exit_note, Durability::Flushed);
            if !absent!(MarkFirst) {
                stored?;
            }
        }
        self.control.with_lock(|guarded| {
            if let Some(old) = guarded.ledger
                && old.era() != ledger.era()
                && old.floor() < old.granted_until()
                && !absent!(StartGranted)
            {
                guarded.granted_before = guarded.granted_before.max(old.granted_until());
            }
            guarded.ledger = Some(ledger);
            change(guarded);
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
        let half = if absent!(MarkHalves) { file.durable_half } else { 1 - file.durable_half };
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
