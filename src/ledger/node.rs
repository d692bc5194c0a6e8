//! This server's number among the nodes.
#![allow(unsafe_code, reason = "the C symbol of a background worker")]

use flake_core::Node;
use pgrx::{pg_guard, pg_sys};

use super::attach::control;
use crate::error::Error;
use crate::postgres::{background, report, settings};

/// Returns the node in force. Sessions with different settings could make the same IDs, so the first session that knows what
/// the server's configuration says pins it until the next server start. A session that does not know uses what is pinned.
pub fn node() -> Result<Node, Error> {
    let configured = settings::node();
    if let Some(node) = pinned(configured)? {
        return Ok(node);
    }
    if let Some((id, count)) = configured {
        return Ok(Node::new(id, count)?);
    }
    // Nobody has pinned anything, and nobody may be locked out for being the first: a process without a client asks.
    let has_run = background::run(c"flake node number", c"flake_pin_node");
    pinned(None)?.ok_or(Error::NodeUnknown { has_run })
}

/// Returns the node that is pinned, after pinning what the server's configuration says if nothing is and this session knows.
fn pinned(configured: Option<(u32, u32)>) -> Result<Option<Node>, Error> {
    let Some(control) = control() else { return Ok(None) };
    let pinned = control.with_lock(|guarded| {
        // An invalid pair is not pinned, so that a reload can correct it.
        if guarded.node.1 == 0
            && let Some((id, count)) = configured
            && Node::new(id, count).is_ok()
        {
            guarded.node = (id, count);
        }
        guarded.node
    });
    if pinned.1 == 0 {
        return Ok(None);
    }
    if let Some((id, count)) = configured.filter(|configured| *configured != pinned) {
        report::warning(
            format!(
                "flake.node_id = {id} and flake.node_count = {count} are not in force; this server is node {} of {}",
                pinned.0, pinned.1,
            ),
            None,
            "Restart the server to apply the new settings.",
        );
    }
    Ok(Some(Node::new(pinned.0, pinned.1)?))
}

/// Pins the node in a background worker, which knows no client, role or database.
#[unsafe(no_mangle)]
#[pg_guard]
pub extern "C-unwind" fn flake_pin_node(_argument: pg_sys::Datum) {
    if let Ok(None) = pinned(settings::node_in_background_worker()) {
        report::log("flake: could not take the number of the node from the server's configuration".to_owned());
    }
}
