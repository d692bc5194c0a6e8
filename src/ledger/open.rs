//! Opens the ledger once per server start, and raises it above what each database knows.

use std::sync::atomic::Ordering;
use std::time::Duration;

use flake_core::opening::Opening;
use flake_core::timeline::{AHEAD, MARGIN};
use flake_core::{Node, absent};

use super::attach::{Attachment, attach, control};
use super::control::{Control, Guarded};
use super::node::node;
use super::{mark_file, mark_page};
use crate::clock;
use crate::error::{Error, superuser_only};
use crate::postgres::{recovery, report, transaction};

/// Opens the ledger of this server start, and raises it above what this database knows of the node, once for each database
/// and each start or promotion.
pub fn open(control: &Control, node: Node) -> Result<(), Error> {
    let in_recovery = recovery::is_in_progress();
    let database = recovery::database();
    let is_done = |guarded: &mut Guarded| {
        guarded.ledger.is_some()
            && (guarded.opened_in_recovery == in_recovery || absent!(PagePromoted))
            && (guarded.databases.contains(database) || absent!(PageCompared))
    };
    if control.with_lock(is_done) {
        return Ok(());
    }
    // These may raise errors of PostgreSQL, so they come before the lock.
    let wal_timeline = recovery::wal_timeline();
    let next_xid = transaction::next_xid();
    let known = mark_page::known(node)?;
    let writer = control.writer();
    if control.with_lock(is_done) {
        return Ok(());
    }
    let present = control.ledger().zip(writer.owner());
    let started_at = control.with_lock(|guarded| Some(guarded.preloaded_at).filter(|&at| at > 0));
    let new_memory = if absent!(PageMemory) { 1 } else { rand::random::<u32>().max(1) };
    let compared_timeline = if absent!(MarkTimeline) { 0 } else { wal_timeline };
    let opening = Opening { now: clock::now(), started_at, node, wal_timeline: compared_timeline, new_memory, known };
    let (ledger, mut owner, exit_note) = match present {
        Some((ledger, owner)) => {
            let (raised, owner) = opening.raised(ledger, owner);
            (raised, owner, None)
        }
        None => {
            let mut record = writer.load()?;
            if absent!(MarkOwner)
                && let Some(record) = &mut record
            {
                record.owner.node = (node.id(), node.count());
            }
            opening.ledger(record, mark_file::boot_id().as_deref())
        }
    };
    // A promoted server keeps its memory, and writes it on a timeline of its own from now on.
    owner.wal_timeline = wal_timeline;
    let is_promoted = control.with_lock(|guarded| guarded.opened_in_recovery && !in_recovery);
    let present = present.map(|(ledger, _)| ledger);
    writer.set_owner(owner);
    if present != Some(ledger) || is_promoted {
        writer.replace(ledger, exit_note)?;
    }
    if let Some((instant, memory)) = known.binding {
        control.bound.fetch_max(instant, Ordering::AcqRel);
        // Sessions that joined before go on in time that was granted to them, unless it may lie below another's horizon.
        if present.is_some() && memory != owner.memory && !absent!(HorizonGranted) {
            control.announced.fetch_max(instant, Ordering::SeqCst);
        }
    }
    control.with_lock(|guarded| {
        if present != Some(ledger) {
            guarded.opened_at = guarded.opened_at.max(ledger.floor());
        }
        if is_promoted {
            guarded.databases = Default::default();
        }
        if present.is_none() || is_promoted {
            control.first_xid.store(next_xid, Ordering::Release);
        }
        guarded.databases.add(database);
        guarded.opened_in_recovery = in_recovery;
        if present.is_none() {
            guarded.clock_step();
        }
    });
    Ok(())
}

/// Writes this server's mark into the page of a database in which the extension has just been created.
pub fn record_mark() -> Result<(), Error> {
    superuser_only("flake_record_mark")?;
    let Attachment::Ledger(control, _) = attach()? else { return Ok(()) };
    // Without a valid number no IDs can have been made since the start; the first session to make any will see to it.
    let Ok(node) = node() else { return Ok(()) };
    if absent!(PageCreated) {
        return Ok(());
    }
    open(control, node)?;
    let Some(ledger) = control.ledger() else { return Ok(()) };
    mark_page::raise(Some(control), node, ledger.greatest_mark())
}

/// Returns how long a session has to wait for `until` because of a restart or a promotion and not because of the clock.
pub fn restart_wait(until: i64) -> Duration {
    let is_due = control()
        .is_some_and(|control| control.with_lock(|guarded| until <= guarded.opened_at) && !absent!(ClockRestart));
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
    control.counters.clock_changes.fetch_add(1, Ordering::Relaxed);
    let by = Duration::from_micros(step.unsigned_abs());
    let direction = if step < 0 { "back" } else { "ahead" };
    report::log(format!("flake: the clock was set {direction} by {by:?}"));
}
