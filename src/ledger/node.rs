//! This server's number among the nodes.

use flake_core::{Error, Node};

use super::attach::control;
use crate::postgres::{report, settings};

/// Returns the node in force. Sessions with different settings could make the same IDs, so the first session to ask pins
/// them until the next server start; others get a WARNING if theirs differ.
pub fn node() -> Result<Node, Error> {
    let (id, count) = settings::node();
    let node = Node::new(id, count);
    let Some(control) = control() else { return node };
    let (pinned_id, pinned_count) = control.with_lock(|guarded| {
        // An invalid pair is not pinned, so that a reload can correct it.
        if guarded.node.1 == 0 && node.is_ok() {
            guarded.node = (id, count);
        }
        guarded.node
    });
    if pinned_count == 0 {
        return node;
    }
    if (pinned_id, pinned_count) != (id, count) {
        report::warning(
            format!(
                "flake.node_id = {id} and flake.node_count = {count} are not in force; this server is node {pinned_id} \
                 of {pinned_count}",
            ),
            None,
            "Restart the server to apply the new settings.",
        );
    }
    Node::new(pinned_id, pinned_count)
}
