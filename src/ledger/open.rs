//! Opens the ledger once per server start, and raises it above what each database knows.

use std::sync::atomic::Ordering;
use std::time::Duration;

use flake_core::marks::KnownMark;
use flake_core::record::ExitNote;
use flake_core::timeline::{AHEAD, MARGIN};
use flake_core::{Ledger, Node};

use super::attach::{Attachment, attach, control};
use super::control::{Control, Guarded};
use super::node::node;
use super::writer::Writer;
use super::{mark_file, mark_page};
use crate::clock;
use crate::error::Error;
use crate::postgres::{recovery, report};

/// Opens the ledger of this server start, and raises it above what this database knows of the node, once for each database
/// and each start or promotion.
pub fn open(control: &Control, node: Node) -> Result<(), Error> {
    let in_recovery = recovery::is_in_progress();
    let database = recovery::database();
    let is_done = |guarded: &mut Guarded| {
        guarded.ledger.is_some() && guarded.opened_in_recovery == in_recovery && guarded.compared.contains(database)
    };
    if control.with_lock(is_done) {
        return Ok(());
    }
    // These may raise errors of PostgreSQL, so they come before the lock.
    let wal_timeline = recovery::wal_timeline();
    let known = mark_page::known(node)?;
    let writer = control.writer();
    if control.with_lock(is_done) {
        return Ok(());
    }
    let present = control.ledger();
    let (mut ledger, mut exit_note) = match present {
        Some(ledger) => (ledger, None),
        None => load(control, &writer, (node, wal_timeline), known)?,
    };
    if let Some(known) = known
        && known.instant > ledger.greatest_mark()
    {
        ledger = ledger.raised_to(known.instant);
        exit_note = None;
    }
    let is_promoted = control.with_lock(|guarded| guarded.opened_in_recovery && !in_recovery);
    if present != Some(ledger) || is_promoted {
        writer.set_owner(node, wal_timeline);
        writer.replace(ledger, exit_note)?;
    }
    control.with_lock(|guarded| {
        if present != Some(ledger) {
            guarded.opened_at = guarded.opened_at.max(ledger.floor());
        }
        if is_promoted {
            guarded.compared = Default::default();
        }
        guarded.compared.add(database);
        guarded.opened_in_recovery = in_recovery;
        if present.is_none() {
            guarded.clock_step();
        }
    });
    Ok(())
}

/// Returns the ledger that a server starts with, and the note of the last session to exit, as long as that counts.
fn load(
    control: &Control,
    writer: &Writer,
    (node, wal_timeline): (Node, u32),
    known: Option<KnownMark>,
) -> Result<(Ledger, Option<ExitNote>), Error> {
    let record = writer.load()?;
    let now = clock::now();
    // How long another server that was the primary under this number may go on without being noticed.
    let overlap = now.saturating_add(MARGIN);
    let preloaded_at = control.with_lock(|guarded| guarded.preloaded_at);
    let new = Ledger::new(if preloaded_at > 0 { preloaded_at } else { now });
    let Some(record) = record else {
        let has_predecessor = known.is_some_and(|known| known.is_listed);
        return Ok((if has_predecessor { new.raised_to(overlap) } else { new }, None));
    };
    if !record.is_of(node) {
        // A copy of another node's file says nothing of this node.
        return Ok((new, None));
    }
    let timeline = record.timeline().unwrap_or_else(|| unreachable!("a record is read with its timeline"));
    // A standby stays what it is, whatever timeline it follows, and so does its file.
    if ![wal_timeline, 0].contains(&record.wal_timeline) && wal_timeline != 0 {
        return Ok((Ledger::inherited(timeline).raised_to(overlap), None));
    }
    let boot_id = mark_file::boot_id();
    let exit_note = record.exit_note.filter(|note| Some(&note.boot_id) == boot_id.as_ref());
    Ok((Ledger::reopened(timeline, exit_note.as_ref().map(|note| note.free_from)), exit_note))
}

/// Writes this server's mark into the page of a database in which the extension has just been created.
pub fn record_mark() -> Result<(), Error> {
    let Attachment::Ledger(control, _) = attach()? else { return Ok(()) };
    // Without a valid number no IDs can have been made since the start; the first session to make any will see to it.
    let Ok(node) = node() else { return Ok(()) };
    open(control, node)?;
    let Some(ledger) = control.ledger() else { return Ok(()) };
    mark_page::cover_anew(node, ledger.greatest_mark())
}

/// Returns how long a session has to wait for `until` because of a restart or a promotion and not because of the clock.
pub fn restart_wait(until: i64) -> Duration {
    let is_due = control().is_some_and(|control| control.with_lock(|guarded| until <= guarded.opened_at));
    Duration::from_micros(if is_due { (AHEAD + MARGIN) as u64 } else { 0 })
}

/// Counts and logs a step of the clock if there was one.
pub fn watch_clock() {
    if let Some(control) = control() {
        report_clock_step(control, control.with_lock(Guarded::clock_step));
    }
}

/// Counts and logs a step of the clock by this many microseconds, unless it is 0.
pub fn report_clock_step(control: &Control, step: i64) {
    if step == 0 {
        return;
    }
    control.counters.clock_steps.fetch_add(1, Ordering::Relaxed);
    let by = Duration::from_micros(step.unsigned_abs());
    let direction = if step < 0 { "back" } else { "ahead" };
    report::log(format!("flake: the clock was set {direction} by {by:?}"));
}
