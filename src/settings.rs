//! The settings `flake.*`.
#![allow(unsafe_code, reason = "pgrx does not wrap reserved prefixes and values by name")]

use flake_core::MOST_NODES;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};

use crate::postgres::server_setting::ServerSetting;

static NODE_ID: ServerSetting = ServerSetting::new(c"flake.node_id", 0);
static NODE_COUNT: ServerSetting = ServerSetting::new(c"flake.node_count", 1);
/// In seconds.
static MAX_LEAD: GucSetting<i32> = GucSetting::<i32>::new(86_400);

/// Defines the settings and reserves their prefix, so that PostgreSQL refuses misspelled names.
pub fn define() {
    NODE_ID.define(
        c"Number of this server among the servers that make IDs.",
        c"Each server has its own number, from 0 to flake.node_count - 1. Changes take effect at the next server start.",
        (0, MOST_NODES as i32 - 1),
    );
    NODE_COUNT.define(
        c"Number of servers that divide the worker numbers.",
        c"It has to be the same on every server. Changes take effect at the next server start.",
        (1, MOST_NODES as i32),
    );
    GucRegistry::define_int_guc(
        c"flake.max_lead",
        c"How far IDs may lead a clock that is behind.",
        c"If IDs of earlier times exist that are further ahead of the clock, sessions raise an error.",
        &MAX_LEAD,
        5,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::UNIT_S,
    );
    // SAFETY: _PG_init calls this, with a string that lives as long as the library.
    unsafe {
        pg_sys::MarkGUCPrefixReserved(c"flake".as_ptr());
    }
}

/// Returns `flake.node_id` and `flake.node_count` as the server's configuration sets them; the ledger knows which are
/// in force. Returns none if a client, a role or a database has set them for this session, which hides the server's.
pub fn node() -> Option<(u32, u32)> {
    let is_known = !NODE_ID.is_shadowed() && !NODE_COUNT.is_shadowed();
    is_known.then(|| NODE_ID.value().zip(NODE_COUNT.value()))?
}

/// Returns `flake.max_lead` in microseconds.
pub fn max_lead() -> i64 {
    i64::from(MAX_LEAD.get()) * 1_000_000
}
