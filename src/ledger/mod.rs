//! PostgreSQL as the host of the protocol in `flake_core::ledger`: shared memory, the file, the pages, and horizons.
//!
//! Nothing here depends on generators. A session calls [`join`] before it has any, and [`leave`] with their progress.

mod attach;
mod backend;
mod control;
mod horizon;
mod lease;
mod mark;
mod membership;
mod node;
mod operator;
mod pages;
mod segment;
mod transactions;
mod turn;

use std::sync::atomic::Ordering;
use std::time::Duration;

use flake_core::Node;
use flake_core::ledger::state::Ledger;
use flake_core::ledger::{claims, protocol, record};

use self::control::Guarded;
use crate::error::{Error, superuser_only};
use crate::postgres::{recovery, report};

pub use self::attach::{counters, preload, system};
pub use self::backend::Backend;
pub use self::control::Counters;
pub use self::horizon::{
    OpenTransaction, horizon, is_announced, making_ids, open_transactions, publish as publish_horizon,
    replayed as replayed_horizon, snapshot,
};
pub use self::lease::{lease, leases};
pub use self::mark::page::{hold as hold_page, reach};
pub use self::membership::{join, leave};
pub use self::node::{node_in_force, node_to_read, part_to_read};
pub use self::operator::{accept_clock, start_above};
pub use self::transactions::{admit, admits, cover, end as end_transaction};
pub use self::turn::{Turn, turn};

/// Returns the error that the file flake.mark would raise in the first session that makes an ID.
pub fn file_error() -> Option<Error> {
    mark::file::read().and_then(|file| Ok(file.map(|bytes| record::newest(&bytes)).transpose()?)).err()
}

/// The state that the view flake_stats shows.
pub struct Status {
    /// The node in force; None before it is pinned.
    pub node: Option<Node>,
    /// The ledger, once it has begun.
    pub ledger: Option<Ledger>,
    /// How many sessions make IDs or ask for horizons.
    pub sessions: u32,
    /// How many lanes of all layouts have words.
    pub lanes: u64,
    pub counters: &'static Counters,
}

/// Returns the state; None if this session cannot use the shared control block.
pub fn status() -> Option<Status> {
    let control = attach::control()?;
    Some(Status {
        node: control.header.node(),
        ledger: control.with_lock(|guarded| guarded.state.ledger),
        sessions: control.shared.sessions.load(Ordering::Relaxed),
        lanes: claims::lanes_in_use(&control.shared),
        counters: &control.counters,
    })
}

/// Returns the error that keeps this session from using the shared memory.
pub fn memory_error() -> Option<Error> {
    attach::attach().err()
}

/// Writes this server's mark into the page of a database in which the extension has just been created.
pub fn record_mark() -> Result<(), Error> {
    superuser_only("flake_record_mark")?;
    // A ledger that begins on a standby would have no timeline, and no turn.
    recovery::refuse(c"flake_record_mark()");
    // The extension can be updated before the server restarts. The first session after the restart then writes the mark.
    match attach::attach() {
        Err(Error::OtherVersion { .. }) => return Ok(()),
        attached => attached?,
    };
    // If the node number is not valid, no ID has been made since the start. The first session that makes one will write the mark.
    if node::node().is_err() {
        return Ok(());
    }
    protocol::record_mark(&mut Backend::new()?)
}

/// Returns how long a session must be ready to wait until `until`, if a start or a promotion has closed the time before it.
pub fn wait_of_start(until: i64) -> Duration {
    let wait = Backend::new().map_or(0, |backend| protocol::wait_of_start(&backend, until));
    Duration::from_micros(wait.unsigned_abs())
}

/// Counts and logs a step of the clock.
pub fn watch_clock() {
    let Some(control) = attach::control() else { return };
    let step = control.with_lock(Guarded::clock_step);
    if step == 0 {
        return;
    }
    control.counters.clock_changes.fetch_add(1, Ordering::Relaxed);
    let by = Duration::from_micros(step.unsigned_abs());
    let direction = if step < 0 { "back" } else { "ahead" };
    report::log(format!("flake: the clock was set {direction} by {by:?}"));
}
