//! The sessions that use the ledger: how they are counted, and what they store when they exit.

use std::sync::atomic::Ordering;

use super::begun;
use crate::instant::BEGINNING;
use crate::ledger::claims;
use crate::ledger::host::{Host, Server, SlotOwner};
use crate::ledger::part_time::PartTime;
use crate::ledger::record::note;
use crate::ledger::slot::FinalProgress;

/// Counts this session, and erases the exit note.
///
/// # Errors
/// The server's errors; the session is not counted then.
pub fn join<H: Host>(host: &mut H) -> Result<(), H::Error> {
    begun(host)?;
    let writer = host.writer();
    note(&writer, None)?;
    writer.shared().sessions.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

/// Stores the progress of this session's generators of snos, at exit, while the session still owns its slot. `progress` is None if
/// the session exits in the middle of making a sno.
pub fn leave<H: SlotOwner>(host: &mut H, progress: Option<&[FinalProgress]>) {
    let Some(PartTime { era, window, .. }) = host.lock(|state| state.ledger.map(|ledger| ledger.time)) else { return };
    let granted_until = window.map_or(BEGINNING, |open| open.until);
    let of_this_era = || progress.into_iter().flatten().filter(|last| last.era == era);
    let free_from = match progress {
        Some(_) => of_this_era().map(|last| last.progress.free_from()).max(),
        None => Some(granted_until),
    };
    host.slot(|slot| match progress {
        None => slot.abandon(era, granted_until),
        Some(all) => all.iter().for_each(|last| slot.store(last)),
    });
    host.lock(|state| {
        if state.ledger.is_some_and(|ledger| ledger.time.era == era) {
            state.free_from = state.free_from.max(free_from);
        }
    });
    host.point("left");
    if host.shared().sessions.fetch_sub(1, Ordering::SeqCst) == 1 {
        note_exit(host);
    }
}

/// Writes the exit note when no session makes IDs any more. Without it, the next start waits for the end of the granted time.
fn note_exit<H: Host>(host: &mut H) {
    // If another session is writing, it makes IDs, and will exit later.
    let Some(writer) = host.try_writer() else { return };
    if writer.shared().sessions.load(Ordering::SeqCst) > 0 {
        return;
    }
    let Some(boot) = writer.boot() else { return };
    let (Some(ledger), free_from) = writer.lock(|state| (state.ledger, state.free_from)) else { return };
    let of_lanes = claims::latest(&*writer, ledger.time.era).map(|start| start.saturating_add(1));
    let announced = writer.shared().announced.load(Ordering::SeqCst);
    if let Some(left) = ledger.time.exit_note(boot, free_from.max(of_lanes).unwrap_or(BEGINNING).max(announced)) {
        let _ = note(&writer, Some(left));
    }
}
