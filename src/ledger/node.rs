//! This server's number among the nodes.
#![allow(unsafe_code, reason = "the C symbol of a background worker")]

use flake_core::Node;
use pgrx::{pg_guard, pg_sys};

use super::attach::{Attachment, attached, header};
use super::control::Header;
use crate::error::Error;
use crate::postgres::{background, report};
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
    let configured = settings::node();
    let header = header()?;
    if let Some(node) = pinned(header, configured) {
        return Ok(node);
    }
    if let Some((id, count)) = configured {
        return Ok(Node::new(id, count)?);
    }
    // Nobody has pinned anything, and nobody may be locked out for being the first: a process without a client asks.
    let has_run = background::run(c"flake node number", c"flake_pin_node");
    pinned(header, None).ok_or(Error::NodeUnknown { has_run })
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
    if let Some(node) = header()?.node() {
        return Ok(node);
    }
    let (id, count) = settings::node().ok_or(Error::NodeNotInForce)?;
    Ok(Node::new(id, count)?)
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

/// Pins the node in a background worker, which knows no client, role or database.
#[unsafe(no_mangle)]
#[pg_guard]
pub extern "C-unwind" fn flake_pin_node(_argument: pg_sys::Datum) {
    if let Ok(header) = header()
        && pinned(header, settings::node_in_background_worker()).is_none()
    {
        report::log("flake: could not take the number of the node from the server's configuration".to_owned());
    }
}
