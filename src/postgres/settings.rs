//! The settings `flake.*`.

use std::time::Duration;

use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};

static NODE_ID: GucSetting<i32> = GucSetting::<i32>::new(0);
static NODE_COUNT: GucSetting<i32> = GucSetting::<i32>::new(1);
static ALLOW_IN_RECOVERY: GucSetting<bool> = GucSetting::<bool>::new(false);
static MAX_CLOCK_WAIT: GucSetting<i32> = GucSetting::<i32>::new(1000);

/// Defines the settings and reserves their prefix, so that PostgreSQL refuses a misspelt one.
pub fn define() {
    GucRegistry::define_int_guc(
        c"flake.node_id",
        c"Number of this server among the servers that make IDs.",
        c"Each server has its own number, from 0 to flake.node_count - 1. Changes take effect at the next server start.",
        &NODE_ID,
        0,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"flake.node_count",
        c"Number of servers that divide the worker numbers.",
        c"It has to be the same on every server. Changes take effect at the next server start.",
        &NODE_COUNT,
        1,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"flake.max_clock_wait",
        c"Longest time that a session waits for a clock that stepped back.",
        c"If the clock is further behind, an error is raised. 0 means never to wait.",
        &MAX_CLOCK_WAIT,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_bool_guc(
        c"flake.allow_in_recovery",
        c"Allows a standby to make IDs.",
        c"The standby needs a flake.node_id of its own, or it makes the same IDs as its primary.",
        &ALLOW_IN_RECOVERY,
        GucContext::Sighup,
        GucFlags::default(),
    );
    #[allow(unsafe_code, reason = "pgrx does not wrap it")]
    // SAFETY: _PG_init calls this, with a string that lives as long as the library.
    unsafe {
        pg_sys::MarkGUCPrefixReserved(c"flake".as_ptr());
    }
}

/// Returns `flake.node_id` and `flake.node_count` as they are set; the ledger knows what is in force.
pub fn node() -> (u32, u32) {
    (NODE_ID.get().unsigned_abs(), NODE_COUNT.get().unsigned_abs())
}

/// Returns `flake.allow_in_recovery`.
pub fn allow_in_recovery() -> bool {
    ALLOW_IN_RECOVERY.get()
}

/// Returns `flake.max_clock_wait`.
pub fn max_clock_wait() -> Duration {
    Duration::from_millis(u64::from(MAX_CLOCK_WAIT.get().unsigned_abs()))
}
