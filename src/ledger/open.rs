//! Opens the ledger once per server start, and changes what is in force on request.

use std::sync::atomic::Ordering;
use std::time::Duration;

use flake_core::Ledger;
use flake_core::timeline::AHEAD;

use super::attach::{Attachment, attach, control};
use super::control::{Control, Guarded};
use super::mark_file::{self, Durability};
use crate::clock;
use crate::error::Error;
use crate::postgres::{recovery, report};

/// Opens the ledger of this server start, which continues from what is on disk, and raises it after a promotion.
pub fn open(control: &Control) -> Result<(), Error> {
    if control.with_lock(|guarded| guarded.ledger.is_some() && !guarded.opened_in_recovery) {
        return Ok(());
    }
    // These may raise errors, so they come before the lock.
    let in_recovery = recovery::is_in_progress();
    let replayed = recovery::replayed_until();
    control.with_lock(|guarded| match guarded.ledger {
        None => first_open(control, guarded, in_recovery, replayed),
        Some(ledger) if guarded.opened_in_recovery && !in_recovery => {
            // After a promotion: the primary may have made IDs up to the last commit that was replayed.
            guarded.replace(control, replayed.map_or(ledger, |instant| ledger.raised_above(instant)))?;
            guarded.opened_in_recovery = false;
            Ok(())
        }
        Some(_) => Ok(()),
    })
}

fn first_open(control: &Control, guarded: &mut Guarded, in_recovery: bool, replayed: Option<i64>) -> Result<(), Error> {
    let (mut ledger, mut exit_note) = match mark_file::load()? {
        None => {
            let is_preloaded = guarded.preloaded_at > 0;
            (Ledger::new(if is_preloaded { guarded.preloaded_at } else { clock::now() }), None)
        }
        Some((half, record)) => {
            guarded.record_number = record.number;
            guarded.durable_half = half;
            let boot_id = mark_file::boot_id();
            let timeline = record.timeline().unwrap_or_else(|| unreachable!("a record is read with its timeline"));
            let exit_note = record.exit_note.filter(|note| Some(&note.boot_id) == boot_id.as_ref());
            (Ledger::reopened(timeline, exit_note.as_ref().map(|note| note.free_from)), exit_note)
        }
    };
    if let Some(instant) = replayed {
        ledger = ledger.raised_above(instant);
        exit_note = None;
    }
    guarded.store(&ledger, exit_note, Durability::Flushed)?;
    guarded.opened_at = ledger.floor();
    guarded.opened_in_recovery = in_recovery;
    guarded.ledger = Some(ledger);
    guarded.clock_step();
    control.window.write(&ledger);
    Ok(())
}

/// Continues at the present clock although later IDs exist; returns the instant from which IDs can be made.
pub fn accept_clock() -> Result<i64, Error> {
    let Attachment::Ledger(control, _) = attach()? else { return Ok(clock::now()) };
    open(control)?;
    let now = clock::now();
    let (from, is_new) = control.with_lock(|guarded| {
        let Some(ledger) = guarded.ledger else { return Ok((now, false)) };
        let (new, from) = ledger.accepted(now);
        if new != ledger {
            guarded.replace(control, new)?;
            guarded.opened_at = i64::MIN;
        }
        control.last_seen.fetch_min(from, Ordering::AcqRel);
        Ok::<_, Error>((from, new != ledger))
    })?;
    if is_new {
        report::log("flake: the present clock was accepted although later IDs exist".to_owned());
    }
    Ok(from)
}

/// Returns how long a session has to wait for `until` because of a restart and not because of the clock.
pub fn restart_wait(until: i64) -> Duration {
    let is_due = control().is_some_and(|control| control.with_lock(|guarded| until <= guarded.opened_at));
    Duration::from_micros(if is_due { AHEAD as u64 } else { 0 })
}

/// Counts and logs a step of the clock if there was one and the lock is free.
pub fn watch_clock() {
    if let Some(control) = control() {
        report_clock_step(control, control.try_with_lock(Guarded::clock_step).unwrap_or(0));
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
