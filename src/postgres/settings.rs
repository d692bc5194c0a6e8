//! The settings `flake.*`.

use std::time::Duration;

use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};

static NODE_ID: GucSetting<i32> = GucSetting::<i32>::new(0);
static NODE_COUNT: GucSetting<i32> = GucSetting::<i32>::new(1);
static ALLOW_IN_RECOVERY: GucSetting<bool> = GucSetting::<bool>::new(false);
static MAX_CLOCK_WAIT: GucSetting<i32> = GucSetting::<i32>::new(1000);

/// Tells PostgreSQL about the settings and reserves their prefix, so that a misspelt one is refused.
pub fn define() {
    GucRegistry::define_int_guc(
        c"flake.node_id",
        c"Number of this server among the flake.node_count servers that make IDs.",
        c"From 0 to flake.node_count - 1, different on every server. In force from the next server start.",
        &NODE_ID,
        0,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"flake.node_count",
        c"Number of servers that the worker numbers are divided among.",
        c"The same on every server. In force from the next server start.",
        &NODE_COUNT,
        1,
        i32::MAX,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"flake.max_clock_wait",
        c"Longest time that a session waits for a clock that stepped back.",
        c"A clock that is further behind is an error. 0 never waits.",
        &MAX_CLOCK_WAIT,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_bool_guc(
        c"flake.allow_in_recovery",
        c"Allows IDs on a standby.",
        c"For standbys with a flake.node_id of their own; one that has its primary's makes the same IDs.",
        &ALLOW_IN_RECOVERY,
        GucContext::Sighup,
        GucFlags::default(),
    );
    #[allow(unsafe_code, reason = "pgrx has no safe form of it")]
    // SAFETY: called from _PG_init with a string that lives as long as the library.
    unsafe {
        pg_sys::MarkGUCPrefixReserved(c"flake".as_ptr());
    }
}

/// `flake.node_id` and `flake.node_count` as they are set, which need not be what is in force.
pub fn node() -> (u32, u32) {
    (NODE_ID.get().unsigned_abs(), NODE_COUNT.get().unsigned_abs())
}

/// `flake.allow_in_recovery`.
pub fn allow_in_recovery() -> bool {
    ALLOW_IN_RECOVERY.get()
}

/// `flake.max_clock_wait`.
pub fn max_clock_wait() -> Duration {
    Duration::from_millis(u64::from(MAX_CLOCK_WAIT.get().unsigned_abs()))
}
