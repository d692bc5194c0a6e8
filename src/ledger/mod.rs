//! PostgreSQL as the host of the protocol in `flake_core::ledger`: shared memory, the file, the pages, and watermarks.
//!
//! Nothing here depends on generators. A session calls [`join`] before it has any, and [`leave`] at its exit.

mod backend;
mod control;
mod mark;
mod memory;
mod node;
mod operator;
mod pages;
mod session;
mod status;
mod turn;
mod watermark;

pub use self::backend::Backend;
pub use self::control::Counters;
pub use self::mark::page::{hold as hold_page, missing as no_page, record};
pub use self::memory::preload;
pub use self::node::{node_in_force, node_to_read, part_to_read};
pub use self::operator::{accept_clock, accept_turn, record_mark, start_above, unused};
pub use self::session::{admit, admits, cover, end_transaction, join, leave};
pub use self::status::{Status, counters, file_error, memory_error, own_ids, status, system, watch_clock};
pub use self::turn::turn;
pub use self::watermark::{
    OpenTransaction, making_ids, open_transactions, publish as publish_watermark, replayed as replayed_watermark,
    snapshot, watermark,
};
