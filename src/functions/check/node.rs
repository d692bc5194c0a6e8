//! Checks of the node's number.

use flake_core::{Node, Turn};

use super::finding::Finding;
use crate::error::Error;
use crate::functions::statements::texts;
use crate::ledger;

/// A node's number, and the number of nodes.
pub type Pair = (u32, u32);

/// Returns the error in these numbers, if there is one.
pub fn fault((id, count): Pair) -> Option<Error> {
    Node::new(id, count).err().map(Error::from)
}

/// The default is right for a single server and its standbys: a promoted standby continues with the number.
pub fn node_number(node: Option<Pair>) -> Finding {
    let Some((id, count)) = node else {
        return Finding::unknown("This session does not know the number of this node.");
    };
    if count > 1 {
        return Finding::fine(format!("This server is node {id} of {count}."));
    }
    let others = others();
    if others.is_empty() {
        return Finding::fine("This server is node 0 of 1, and has no logical replication slots or subscriptions.");
    }
    Finding::wrong(
        format!("This server is node 0 of 1, the default, but it is not alone ({}).", others.join(", ")),
        "Set flake.node_count to the same number on all servers and flake.node_id to a different one on each, and restart \
         them.",
    )
}

/// Returns signs that other servers make IDs for the same data. Any role may count them.
fn others() -> Vec<String> {
    let query = "
        SELECT pg_catalog.concat('logical replication slots: ', pg_catalog.count(*)) FROM pg_catalog.pg_replication_slots
        -- A physical proc, which a standby uses, has no plugin. REPACK (CONCURRENTLY) uses this one since version 19.
        WHERE plugin OPERATOR(pg_catalog.<>) 'pgrepack'
        HAVING pg_catalog.count(*) OPERATOR(pg_catalog.>) 0
        UNION ALL SELECT pg_catalog.concat('subscriptions: ', pg_catalog.count(s.oid)) FROM pg_catalog.pg_subscription s
        HAVING pg_catalog.count(s.oid) OPERATOR(pg_catalog.>) 0";
    texts(query)
}

/// Says which turn the server has.
pub fn turn() -> Finding {
    match ledger::turn() {
        None => Finding::fine("A standby makes no IDs, and has a turn from its promotion on."),
        Some(Err(error)) => Finding::from(&error),
        Some(Ok((Turn { timeline, turn }, true))) => {
            Finding::fine(format!("This server has turn {turn} of 0 to 3, on timeline {timeline}."))
        }
        Some(Ok((Turn { timeline, turn }, false))) => Finding::fine(format!(
            "From the first ID on, this server has turn {turn} of 0 to 3, on timeline {timeline}."
        )),
    }
}

/// Finds settings that wait for a restart, that are invalid, or that this session cannot see.
pub fn node_settings(in_force: Option<Pair>, configured: Option<Pair>) -> Finding {
    let this = in_force.map(|(id, count)| format!("this server is node {id} of {count}"));
    let Some((id, count)) = configured else {
        return Finding::wrong(
            format!(
                "The client, the role or the database has set flake.node_id or flake.node_count, which has no effect, or the \
                 server's configuration has no valid ones; {}.",
                this.as_deref().unwrap_or("no number is in force before the first ID")
            ),
            "Remove the setting from the connection's options, or with ALTER ROLE or ALTER DATABASE ... RESET, and check the \
             server's configuration and command line.",
        );
    };
    if let Some(fault) = fault((id, count)) {
        return Finding::from(&fault);
    }
    match this {
        Some(this) if in_force != configured => Finding::wrong(
            format!("flake.node_id = {id} and flake.node_count = {count} are not in force; {this}."),
            "Restart the server to apply the new settings.",
        ),
        Some(_) => Finding::fine("The settings in the server's configuration are in force."),
        None => Finding::fine(format!("From the first ID on, this server is node {id} of {count}.")),
    }
}
