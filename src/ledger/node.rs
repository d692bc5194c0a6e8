//! This server's number among the nodes.

use flake_core::Node;

use super::attach::{Attachment, attached, header};
use super::control::Header;
use crate::error::Error;
use crate::postgres::report;
use crate::settings;

/// Returns the node in force. Sessions with different settings could make the same IDs, so the first session that knows what
/// the server's configuration says pins it until the next server start. A session that does not know uses what is pinned.
pub fn node() -> Result<Node, Error> {
    let node = known_node()?;
    // Lessees make IDs of that number.
    if settings::lease_node() == Some(Some(node.id())) {
        return Err(Error::LeaseNodeIsOwn { node: node.id() });
    }
    Ok(node)
}

fn known_node() -> Result<Node, Error> {
    pinned(header()?, settings::node()).map_or_else(configured, Ok)
}

/// Returns the node of the server's configuration, which nobody has pinned.
fn configured() -> Result<Node, Error> {
    let (id, count) = settings::node().ok_or(Error::NodeUnknown)?;
    Ok(Node::new(id, count)?)
}

/// Returns the pool: the number whose workers applications lease from this server.
pub fn lease_node() -> Result<Node, Error> {
    let count = node()?.count();
    match settings::lease_node() {
        None => Err(Error::LeaseNodeUnknown),
        Some(None) => Err(Error::NoLeaseNode),
        Some(Some(id)) => Node::new(id, count).map_err(|_| Error::LeaseNodeOutOfRange { id, count }),
    }
}

/// Returns the node in force if this session has found that already, which raises no error.
#[inline]
pub fn node_in_force() -> Option<Node> {
    attached().and_then(|Attachment { control, other_version }| other_version.unwrap_or(&control.header).node())
}

/// Returns the node in force without pinning it, for those who only read: before the first ID, the one that it would pin.
pub fn node_to_read() -> Result<Node, Error> {
    header()?.node().map_or_else(configured, Ok)
}

/// Returns the node that is pinned, after pinning what the server's configuration says if nothing is and this session knows.
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
