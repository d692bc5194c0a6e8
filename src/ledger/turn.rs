//! The turn of this server: which part of its node's IDs its sessions make, by the history of the WAL's timeline.

use super::attach::control;
use crate::postgres::{recovery, report};

/// Returns a timeline, with those before it in its history, the first one first; None if the file that lists them is missing or cannot
/// be read, such as after `pg_resetwal`.
pub fn history(timeline: u32) -> Option<Vec<u32>> {
    // The first timeline has no file.
    if timeline <= 1 {
        Some(vec![timeline])
    } else {
        flake_core::history(&recovery::timeline_history(timeline)?, timeline)
    }
}

/// Warns that the turn comes from the number of the timeline alone.
pub fn warn(timeline: u32) {
    report::warning(
        format!("the history of timeline {timeline} is not known"),
        Some(
            "Which part of the node's IDs this server makes follows from the number of the timeline alone, so an earlier primary may have \
            the same part.",
        ),
        "Make sure that no earlier primary of these data makes IDs any more, or give this server a flake.node_id of its own.",
    );
}

/// The turn of this server, as an operator looks at it.
pub struct Turn {
    /// The timeline of the WAL.
    pub timeline: u32,
    /// Whether the history of the timeline is known.
    pub is_known: bool,
    /// The turn in force, once the ledger has begun.
    pub in_force: Option<u32>,
}

/// Returns the turn; None on a standby, which has none before its promotion.
pub fn turn() -> Option<Turn> {
    let timeline = recovery::wal_timeline();
    let in_force = control().and_then(|control| control.with_lock(|guarded| guarded.state.ledger));
    (timeline > 0).then(|| Turn {
        timeline,
        is_known: history(timeline).is_some(),
        in_force: in_force.map(|ledger| ledger.part().turn()),
    })
}
