//! This server's number among the nodes.

use flake_core::{Node, Part};

use super::control::Header;
use super::memory::{attach, attached};
use crate::error::Error;
use crate::postgres::report;
use crate::settings;

/// Returns the node in force. Sessions with different settings could make the same IDs. So the first session that sees the server's
/// configuration pins the node until the next start, and every session uses the pinned one.
pub fn node() -> Result<Node, Error> {
    pinned(&attach()?.control.header, settings::node()).map_or_else(configured, Ok)
}

/// Returns the node of the server's configuration, without pinning it.
fn configured() -> Result<Node, Error> {
    let (id, count) = settings::node().ok_or_else(|| {
        Error::not_ready("number of this node is not known")
            .detail(
                "This session cannot see flake.node_id and flake.node_count of the server: the client, the role or \
                 the database has set one of them, or the server's own value is not a number or was removed.",
            )
            .hint(
                "Remove the setting from the connection's options, or with ALTER ROLE or ALTER DATABASE … RESET; \
                 restart the server after its own value was removed. With flake in shared_preload_libraries, every \
                 session sees the server's.",
            )
    })?;
    Ok(Node::new(id, count)?)
}

/// Returns the node in force if this session has found it already. Raises no error.
#[inline]
pub fn node_in_force() -> Option<Node> {
    attached().and_then(|memory| memory.control.header.node())
}

/// Returns the node in force without pinning it, for a caller that only reads. Before the first ID this is the configured node.
pub fn node_to_read() -> Result<Node, Error> {
    attach()?.control.header.node().map_or_else(configured, Ok)
}

/// Returns the part of this server's sessions, for a caller that only reads. Before the first ID, the turn is 0: all parts have as many
/// IDs.
pub fn part_to_read() -> Result<Part, Error> {
    match attach()?.control.with_state(|state| state.ledger) {
        Some(ledger) => Ok(ledger.part()),
        None => Ok(Part::in_turn(node_to_read()?, 0, 0)),
    }
}

/// Returns the pinned node. Pins the configured one first if none is pinned and this session can see the server's configuration.
fn pinned(header: &Header, configured: Option<(u32, u32)>) -> Option<Node> {
    // An invalid pair is not pinned, so that a reload can correct it.
    if let Some((id, count)) = configured
        && let Ok(node) = Node::new(id, count)
    {
        header.pin(node);
    }
    let pinned = header.node()?;
    if let Some((id, count)) = configured.filter(|configured| *configured != (pinned.id(), pinned.count())) {
        report::warning(
            format!(
                "flake.node_id = {id} and flake.node_count = {count} are not in force; this server is node {} of {}",
                pinned.id(),
                pinned.count(),
            ),
            None,
            "Restart the server to apply the new settings.",
        );
    }
    Some(pinned)
}
