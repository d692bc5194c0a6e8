//! The ledger as the sessions of this server share it: which time they may use, and what sessions that exited have used.
//!
//! It knows nothing of generators: sessions [`join`] it, reach it as [`SharedLedger`], and [`leave`] their progress.

mod access;
mod attach;
mod control;
mod databases;
mod horizon;
mod mark_file;
mod mark_page;
mod membership;
mod node;
mod open;
mod operator;
mod segment;
mod seqlock;
mod transactions;
mod writer;

use std::sync::atomic::Ordering;

use flake_core::{Ledger, Node};

use self::attach::Attachment;
use crate::error::Error;

pub use self::access::SharedLedger;
pub use self::attach::{counters, preload};
pub use self::control::Counters;
pub use self::horizon::{OpenTransaction, check as check_horizon, horizon, is_announced, open_transactions};
pub use self::mark_page::hold as hold_page;
pub use self::membership::{join, leave};
pub use self::node::node_to_read;
pub use self::open::{record_mark, restart_wait, watch_clock};
pub use self::operator::{accept_clock, start_above};
pub use self::transactions::{admit, admits, cover, end as end_transaction, notice_promotion};

/// What the view flake_stats shows of the ledger.
pub struct Snapshot {
    /// The node in force; none before it is pinned.
    pub node: Option<Node>,
    /// The ledger, once it is open.
    pub ledger: Option<Ledger>,
    /// How many sessions have made IDs or asked for a horizon.
    pub sessions: u32,
    pub counters: &'static Counters,
}

/// Returns the ledger's state, or none where this session does without it.
pub fn snapshot() -> Option<Snapshot> {
    let control = attach::control()?;
    Some(Snapshot {
        node: control.header.node(),
        ledger: control.ledger(),
        sessions: control.sessions.load(Ordering::Relaxed),
        counters: &control.counters,
    })
}

/// Returns the version of the control block if it is that of another version of the library.
pub fn foreign_version() -> Result<Option<u32>, Error> {
    match attach::attach()? {
        Attachment::Foreign(header) => Ok(Some(header.version)),
        _ => Ok(None),
    }
}
