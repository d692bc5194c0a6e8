//! The turn of this server: which part of its node's IDs its sessions make, by the history of the WAL's timeline.

use flake_core::ledger::host::Timeline;

use super::memory::memory;
use crate::postgres::{recovery, report};

/// Returns the timeline of the WAL. Its history is not known if the file that lists the timelines before it is missing or cannot be
/// read, such as after `pg_resetwal`.
pub fn timeline() -> Timeline {
    let number = recovery::wal_timeline();
    // The first timeline has no file.
    let history = if number <= 1 {
        Some(vec![number])
    } else {
        recovery::timeline_history(number).and_then(|text| flake_core::history(&text, number))
    };
    let is_known = history.is_some();
    Timeline { number, turn: flake_core::turn(history.unwrap_or_else(|| vec![number])), is_known }
}

/// Warns that the turn comes from the number of the timeline alone.
pub fn warn(timeline: u32) {
    report::warning(
        format!("the history of timeline {timeline} is not known"),
        Some(
            "The number of the timeline alone decides which part of the node's IDs this server makes, so an earlier primary \
             may have the same part.",
        ),
        "Make sure that no earlier primary of these data makes IDs any more, or give this server a flake.node_id of its own.",
    );
}

/// Returns the timeline, and the turn in force once the ledger has begun; None on a standby, which has none before its promotion.
pub fn turn() -> Option<(Timeline, Option<u32>)> {
    let ledger = memory().and_then(|memory| memory.control.with_state(|state| state.ledger));
    Some((timeline(), ledger.map(|ledger| ledger.part().turn()))).filter(|(timeline, _)| timeline.number > 0)
}
