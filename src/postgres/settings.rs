//! The settings `flake.*`.
#![allow(unsafe_code, reason = "pgrx does not wrap check hooks, placeholders and reserved prefixes")]

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};

static NODE_ID: NodeSetting = NodeSetting::new(0);
static NODE_COUNT: NodeSetting = NodeSetting::new(1);
static ALLOW_IN_RECOVERY: GucSetting<bool> = GucSetting::<bool>::new(false);
static MAX_CLOCK_WAIT: GucSetting<i32> = GucSetting::<i32>::new(1000);

/// Defines the settings and reserves their prefix, so that PostgreSQL refuses a misspelt one.
pub fn define() {
    NODE_ID.define(
        c"flake.node_id",
        c"Number of this server among the servers that make IDs.",
        c"Each server has its own number, from 0 to flake.node_count - 1. Changes take effect at the next server start.",
        0,
        check_node_id,
    );
    NODE_COUNT.define(
        c"flake.node_count",
        c"Number of servers that divide the worker numbers.",
        c"It has to be the same on every server. Changes take effect at the next server start.",
        1,
        check_node_count,
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
    // SAFETY: _PG_init calls this, with a string that lives as long as the library.
    unsafe {
        pg_sys::MarkGUCPrefixReserved(c"flake".as_ptr());
    }
}

/// Returns `flake.node_id` and `flake.node_count` as the server's configuration sets them; the ledger knows what is in
/// force. None if this session cannot know, because a client, a role or a database has set them for it.
pub fn node() -> Option<(u32, u32)> {
    let is_known = !NODE_ID.is_shadowed() && !NODE_COUNT.is_shadowed();
    is_known.then(|| (NODE_ID.value.get().unsigned_abs(), NODE_COUNT.value.get().unsigned_abs()))
}

/// Returns `flake.allow_in_recovery`.
pub fn allow_in_recovery() -> bool {
    ALLOW_IN_RECOVERY.get()
}

/// Returns `flake.max_clock_wait`.
pub fn max_clock_wait() -> Duration {
    Duration::from_millis(u64::from(MAX_CLOCK_WAIT.get().unsigned_abs()))
}

/// A setting that only the server's configuration may set.
///
/// Until the library is loaded PostgreSQL knows no such rule: it keeps what anybody says of the setting in a placeholder, where
/// the value of a client, role or database replaces that of the configuration file. When the setting is defined PostgreSQL
/// refuses that value, and the boot value is all that remains.
struct NodeSetting {
    value: GucSetting<i32>,
    had_placeholder: AtomicBool,
    /// Where the value that PostgreSQL checked last came from.
    source: AtomicU32,
}

impl NodeSetting {
    const fn new(boot_value: i32) -> Self {
        Self {
            value: GucSetting::<i32>::new(boot_value),
            had_placeholder: AtomicBool::new(false),
            source: AtomicU32::new(pg_sys::GucSource::PGC_S_DEFAULT),
        }
    }

    fn define(
        &'static self,
        name: &'static CStr,
        short: &'static CStr,
        long: &'static CStr,
        min: i32,
        check: unsafe extern "C-unwind" fn(*mut i32, *mut *mut core::ffi::c_void, pg_sys::GucSource::Type) -> bool,
    ) {
        // SAFETY: the name is a C string; a setting that does not exist may be missing.
        let placeholder = unsafe { pg_sys::GetConfigOption(name.as_ptr(), true, false) };
        self.had_placeholder.store(!placeholder.is_null(), Ordering::Relaxed);
        // SAFETY: the check hook does not panic.
        unsafe {
            GucRegistry::define_int_guc_with_hooks(
                name,
                short,
                long,
                &self.value,
                min,
                i32::MAX,
                GucContext::Sighup,
                GucFlags::default(),
                Some(check),
                None,
                None,
            );
        }
    }

    /// Returns whether somebody else's value has replaced that of the server's configuration in this session.
    fn is_shadowed(&self) -> bool {
        self.had_placeholder.load(Ordering::Relaxed)
            && self.source.load(Ordering::Relaxed) == pg_sys::GucSource::PGC_S_DEFAULT
    }
}

unsafe extern "C-unwind" fn check_node_id(
    _value: *mut i32,
    _extra: *mut *mut core::ffi::c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    NODE_ID.source.store(source, Ordering::Relaxed);
    true
}

unsafe extern "C-unwind" fn check_node_count(
    _value: *mut i32,
    _extra: *mut *mut core::ffi::c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    NODE_COUNT.source.store(source, Ordering::Relaxed);
    true
}
