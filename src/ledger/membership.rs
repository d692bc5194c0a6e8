//! Sessions join the ledger before they have generators, and leave their progress when they exit.
#![allow(unsafe_code, reason = "the progress of this session's slot in shared memory")]

use std::cell::Cell;
use std::sync::atomic::Ordering;

use flake_core::FinalProgress;
use flake_core::record::ExitNote;

use super::attach::{Attachment, attach, attach_slot, attached};
use super::mark_file::{self, Durability};
use super::open::open;
use crate::clock;
use crate::error::Error;

thread_local! {
    static HAS_JOINED: Cell<bool> = const { Cell::new(false) };
}

/// Opens the ledger for a session that is about to create a generator, and counts the session once.
pub fn join() -> Result<(), Error> {
    let has_joined = HAS_JOINED.get();
    if let Attachment::Ledger(control, _) = if has_joined { attach()? } else { attach_slot()? } {
        open(control)?;
        if !has_joined {
            control.with_lock(|guarded| {
                if let Some(ledger) = guarded.ledger
                    && guarded.has_exit_note
                {
                    guarded.store(&ledger, None, Durability::Buffered)?;
                }
                control.sessions.fetch_add(1, Ordering::AcqRel);
                Ok::<_, Error>(())
            })?;
        }
    }
    HAS_JOINED.set(true);
    Ok(())
}

/// Leaves the progress of this session's generators to later sessions, at exit, while the slot still belongs to this
/// session. `progress` is none when the session exits in the middle of making an ID.
pub fn leave(progress: Option<&[FinalProgress]>) {
    let used_before = |mark: i64| match progress {
        Some(all) => all.iter().map(|last| last.progress.free_from()).max().unwrap_or(i64::MIN),
        // The unfinished ID cannot be beyond the mark.
        None => mark,
    };
    match attached() {
        Attachment::Ledger(control, slot) => control.with_lock(|guarded| {
            let Some(ledger) = guarded.ledger else { return };
            let free_from = used_before(ledger.mark());
            // SAFETY: it belongs to this session's slot, so nobody else uses it while the session lives.
            match (unsafe { slot.as_mut() }, progress) {
                (None, _) => {
                    control.header.unstored_floor.fetch_max(free_from, Ordering::AcqRel);
                }
                (Some(slot), None) => slot.abandon(ledger.era(), free_from),
                (Some(slot), Some(all)) => all.iter().for_each(|last| slot.store(last)),
            }
            let of_this_era = progress.iter().copied().flatten().filter(|last| last.era == ledger.era());
            let present = of_this_era.map(|last| last.progress.start).max().unwrap_or(i64::MIN);
            if present <= clock::now() {
                control.last_seen.fetch_max(present, Ordering::AcqRel);
            }
            guarded.free_from = guarded.free_from.max(free_from);
            let is_last = control.sessions.fetch_sub(1, Ordering::AcqRel) == 1;
            if is_last && let Some(boot_id) = mark_file::boot_id() {
                let unstored_floor = control.header.unstored_floor.load(Ordering::Acquire);
                let free_from = ledger.floor().max(guarded.free_from).max(unstored_floor);
                // Without the note, the next start is above the mark, which is safe.
                let _ = guarded.store(&ledger, Some(ExitNote { boot_id, free_from }), Durability::Buffered);
            }
        }),
        Attachment::Foreign(header) => {
            header.unstored_floor.fetch_max(used_before(clock::now()), Ordering::AcqRel);
        }
        Attachment::Unknown => {}
    }
}
