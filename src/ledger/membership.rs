//! Sessions join the ledger before they have generators, and leave their progress when they exit.
#![allow(unsafe_code, reason = "the progress of this session's slot in shared memory")]

use std::cell::Cell;
use std::sync::atomic::Ordering;

use flake_core::record::ExitNote;
use flake_core::{FinalProgress, Node, absent};

use super::access::granted_without_ledger;
use super::attach::{Attachment, attach_slot, attached};
use super::control::Control;
use super::mark_file::{self, Durability};
use super::node::node;
use super::open::open;
use super::{segment, transactions};
use crate::clock;
use crate::error::Error;

thread_local! {
    static HAS_JOINED: Cell<bool> = const { Cell::new(false) };
}

/// Opens the ledger for a session that is about to create a generator of this tick length, or to ask for a horizon; counts
/// the session once, and returns the node that it makes IDs for.
pub fn join(tick_length: i64) -> Result<Node, Error> {
    let has_joined = HAS_JOINED.get();
    let attachment = if has_joined { attached() } else { attach_slot()? };
    let node = node()?;
    match attachment {
        Attachment::Ledger(control, _) => {
            open(control, node)?;
            control.longest_tick.fetch_max(tick_length, Ordering::AcqRel);
            if !has_joined {
                let writer = control.writer();
                if !absent!(ExitNoteWithdrawn) {
                    writer.withdraw_exit_note()?;
                }
                control.sessions.fetch_add(1, Ordering::AcqRel);
                transactions::take_part(Some(control), segment::attached());
            }
        }
        Attachment::Foreign(header) if !has_joined => {
            header.foreign_sessions.fetch_add(1, Ordering::AcqRel);
            transactions::take_part(None, None);
        }
        _ => {}
    }
    HAS_JOINED.set(true);
    Ok(node)
}

/// Leaves the progress of this session's generators to later sessions, at exit, while the slot still belongs to this
/// session. `progress` is none when the session exits in the middle of making an ID.
pub fn leave(progress: Option<&[FinalProgress]>) {
    let progress = if absent!(SlotGivenUp) { progress.or(Some(&[])) } else { progress };
    let latest = |all: &mut dyn Iterator<Item = &FinalProgress>| all.map(|last| last.progress.free_from()).max();
    match attached() {
        Attachment::Ledger(control, slot) => {
            control.with_lock(|guarded| {
                let Some(ledger) = guarded.ledger else { return };
                let of_this_era = || progress.into_iter().flatten().filter(|last| last.era == ledger.era());
                // What an earlier era used, no later one uses.
                let free_from = match progress {
                    Some(_) => latest(&mut of_this_era()).unwrap_or(i64::MIN),
                    None => ledger.granted_until(),
                };
                // SAFETY: it belongs to this session's slot, so nobody else uses it while the session lives.
                match (unsafe { slot.as_mut() }, progress) {
                    (None, _) if absent!(MemoryFloor) => {}
                    (None, _) => {
                        control.unstored_floor.fetch_max(free_from, Ordering::AcqRel);
                    }
                    (Some(slot), None) => slot.abandon(ledger.era(), free_from),
                    (Some(_), Some(_)) if absent!(SlotProgress) => {}
                    (Some(slot), Some(all)) => all.iter().for_each(|last| slot.store(last)),
                }
                let present = of_this_era().map(|last| last.progress.start).max().unwrap_or(i64::MIN);
                if present <= clock::now() {
                    control.last_seen.fetch_max(present, Ordering::AcqRel);
                }
                guarded.free_from = guarded.free_from.max(free_from);
            });
            transactions::leave(control);
            if control.sessions.fetch_sub(1, Ordering::AcqRel) == 1 || absent!(ExitNoteOfLast) {
                write_exit_note(control);
            }
        }
        Attachment::Foreign(header) => {
            let granted_until = granted_without_ledger().max(clock::now());
            let used_before = progress.map_or(granted_until, |all| latest(&mut all.iter()).unwrap_or(i64::MIN));
            if !absent!(ForeignFloor) {
                header.foreign_floor.fetch_max(used_before, Ordering::AcqRel);
            }
        }
        Attachment::Unknown => {}
    }
}

/// Notes from when on time is free, once no session makes IDs any more. Without the note, the next server start waits for
/// the end of the time that was granted, which is safe.
fn write_exit_note(control: &Control) {
    // Whoever has the right to write makes IDs, and leaves later.
    let Some(writer) = control.try_writer() else { return };
    // Sessions of other versions take no part in the count, nor in the ledger.
    let is_last = control.sessions.load(Ordering::Acquire) == 0 || absent!(ExitNoteOfLast);
    let is_any_foreign = control.header.foreign_sessions.load(Ordering::Acquire) > 0 && !absent!(ForeignExitNote);
    if !is_last || is_any_foreign {
        return;
    }
    let Some(boot_id) = mark_file::boot_id() else { return };
    let Some((ledger, free_from)) = control.with_lock(|guarded| Some((guarded.ledger?, guarded.free_from))) else {
        return;
    };
    let mut free_from = ledger.floor().max(free_from);
    if !absent!(HorizonNoted) {
        free_from = free_from.max(control.announced.load(Ordering::Acquire));
    }
    let _ = writer.store(&ledger, Some(ExitNote { boot_id, free_from }), Durability::Buffered);
}
