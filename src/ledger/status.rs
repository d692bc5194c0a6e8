//! The state of the ledger for operators, and what sessions report to it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use flake_core::ledger::cursors::claims::{Quota, quota};
use flake_core::ledger::cursors::own::OwnIds;
use flake_core::ledger::durable::file::newest;
use flake_core::ledger::time::operator::led_to;
use flake_core::ledger::time::state::Ledger;
use flake_core::{IdSource, Lanes, Layout, Node};

use super::control::{Counters, System};
use super::mark::{file, page};
use super::memory::{attach, attached, memory};
use crate::clock;
use crate::error::Error;
use crate::postgres::{recovery, report};

/// The state that the view flake_stat shows.
pub struct Status {
    /// The node in force; None before it is pinned.
    pub node: Option<Node>,
    /// The ledger, once it has begun.
    pub ledger: Option<Ledger>,
    /// How far IDs lead the clock, in microseconds.
    pub lead: i64,
    /// How many sessions make IDs or ask for watermarks.
    pub sessions: u32,
    /// The lanes of the custom layouts of this database.
    pub lanes: Quota,
    pub counters: &'static Counters,
}

/// Returns the state; None if the shared memory belongs to another version.
pub fn status() -> Option<Status> {
    let memory = memory()?;
    let control = memory.control;
    let ledger = control.with_state(|state| state.ledger);
    let now = clock::now();
    let led_to = ledger.map_or(now, |ledger| led_to(&control.shared, &ledger, now, clock::monotonic()));
    Some(Status {
        node: control.header.node(),
        ledger,
        lead: led_to.saturating_sub(now),
        sessions: control.shared.sessions.load(Ordering::Relaxed),
        lanes: quota(&control.shared, memory.lines, recovery::database()),
        counters: &control.counters,
    })
}

/// Returns which IDs of a layout this server has made, once the ledger has begun.
pub fn own_ids(layout: &'static Layout) -> Option<OwnIds<'static>> {
    let memory = memory()?;
    let shared = &memory.control.shared;
    let (ledger, era) = memory.control.with_state(|state| Some((state.ledger?, shared.era())))?;
    let lanes = Lanes::new(layout, ledger.part()).ok()?;
    let page = page::read().ok()?.record().ok()?;
    Some(OwnIds::read((shared, memory.lines), (&ledger, era, &page), (layout, layout.cursors(), lanes)))
}

/// Returns the error that keeps this session from using the shared memory.
pub fn memory_error() -> Option<Error> {
    attach().err()
}

/// Returns the error that the file flake.mark would raise in the first session that makes an ID.
pub fn file_error() -> Option<Error> {
    file::read().and_then(|file| Ok(file.map(|bytes| newest(&bytes)).transpose()?)).err()
}

/// Returns the server's counters.
pub fn counters() -> Option<&'static Counters> {
    attached().map(|memory| &memory.control.counters)
}

/// Returns facts about the operating system that earlier sessions have found.
pub fn system() -> Option<&'static System> {
    attached().map(|memory| &memory.control.system)
}

/// Counts and logs a step of the clock.
pub fn watch_clock() {
    let Some(control) = attached().map(|memory| memory.control) else { return };
    let step = control.guarded.lock().clock_step();
    if step == 0 {
        return;
    }
    control.counters.clock_changes.fetch_add(1, Ordering::Relaxed);
    let by = Duration::from_micros(step.unsigned_abs());
    let direction = if step < 0 { "back" } else { "ahead" };
    report::log(format!("flake: the clock was set {direction} by {by:?}"));
}
