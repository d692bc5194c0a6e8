//! The settings `flake.*`.
#![allow(unsafe_code, reason = "pgrx does not wrap check hooks, placeholders and reserved prefixes")]

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

use pgrx::pg_sys::GucSource::PGC_S_DEFAULT;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};

static NODE_ID: NodeSetting = NodeSetting::new(0);
static NODE_COUNT: NodeSetting = NodeSetting::new(1);
static ALLOW_IN_RECOVERY: GucSetting<bool> = GucSetting::<bool>::new(false);
static MAX_CLOCK_WAIT: GucSetting<i32> = GucSetting::<i32>::new(1000);

/// Defines the hooks of a setting.
macro_rules! hooks {
    ($setting:ident) => {{
        unsafe extern "C-unwind" fn check(_: *mut i32, _: *mut *mut c_void, source: pg_sys::GucSource::Type) -> bool {
            $setting.checked(source)
        }
        unsafe extern "C-unwind" fn assign(_: i32, _: *mut c_void) {
            $setting.assigned()
        }
        (check, assign)
    }};
}

/// Defines the settings and reserves their prefix, so that PostgreSQL refuses a misspelt one.
pub fn define() {
    NODE_ID.define(
        c"flake.node_id",
        c"Number of this server among the servers that make IDs.",
        c"Each server has its own number, from 0 to flake.node_count - 1. Changes take effect at the next server start.",
        0,
        hooks!(NODE_ID),
    );
    NODE_COUNT.define(
        c"flake.node_count",
        c"Number of servers that divide the worker numbers.",
        c"It has to be the same on every server. Changes take effect at the next server start.",
        1,
        hooks!(NODE_COUNT),
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

/// Returns the same in a process that no client, role or database has told anything; none if the server's configuration has
/// a value that is not valid.
pub fn node_in_background_worker() -> Option<(u32, u32)> {
    let is_valid = !NODE_ID.was_refused() && !NODE_COUNT.was_refused();
    is_valid.then(|| (NODE_ID.value.get().unsigned_abs(), NODE_COUNT.value.get().unsigned_abs()))
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
    placeholder: AtomicU8,
    /// Where the value that was checked last came from. It need not have been applied.
    checked_source: AtomicU32,
    /// Where the value in force came from.
    source: AtomicU32,
    /// Whether the definition has left the boot value in the place of a placeholder's.
    is_refused: AtomicBool,
    /// Whether it was defined when the server started. Nobody but the server's configuration has set it since.
    is_preloaded: AtomicBool,
}

const NO_PLACEHOLDER: u8 = 0;
/// The placeholder of a value that has been removed from the configuration, or of an empty text.
const EMPTY_PLACEHOLDER: u8 = 1;
const PLACEHOLDER: u8 = 2;

type CheckHook = unsafe extern "C-unwind" fn(*mut i32, *mut *mut c_void, pg_sys::GucSource::Type) -> bool;
type AssignHook = unsafe extern "C-unwind" fn(i32, *mut c_void);

impl NodeSetting {
    const fn new(boot_value: i32) -> Self {
        Self {
            value: GucSetting::<i32>::new(boot_value),
            placeholder: AtomicU8::new(NO_PLACEHOLDER),
            checked_source: AtomicU32::new(PGC_S_DEFAULT),
            source: AtomicU32::new(PGC_S_DEFAULT),
            is_refused: AtomicBool::new(false),
            is_preloaded: AtomicBool::new(false),
        }
    }

    fn define(
        &'static self,
        name: &'static CStr,
        short: &'static CStr,
        long: &'static CStr,
        min: i32,
        (check, assign): (CheckHook, AssignHook),
    ) {
        // SAFETY: the name is a C string, and the setting may be missing; a value is a C string.
        let placeholder = unsafe {
            let value = pg_sys::GetConfigOption(name.as_ptr(), true, false);
            match value.as_ref() {
                None => NO_PLACEHOLDER,
                Some(0) => EMPTY_PLACEHOLDER,
                Some(_) => PLACEHOLDER,
            }
        };
        self.placeholder.store(placeholder, Ordering::Relaxed);
        // SAFETY: it reads a variable of this process.
        self.is_preloaded.store(unsafe { pg_sys::process_shared_preload_libraries_in_progress }, Ordering::Relaxed);
        // SAFETY: the hooks do not panic.
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
                Some(assign),
                None,
            );
        }
        self.is_refused.store(placeholder != NO_PLACEHOLDER && self.has_boot_value(), Ordering::Relaxed);
    }

    fn has_boot_value(&self) -> bool {
        self.source.load(Ordering::Relaxed) == PGC_S_DEFAULT
    }

    /// PostgreSQL checks values that it does not apply, too: those of ALTER SYSTEM and of the view pg_file_settings.
    fn checked(&self, source: pg_sys::GucSource::Type) -> bool {
        self.checked_source.store(source, Ordering::Relaxed);
        true
    }

    fn assigned(&self) {
        self.source.store(self.checked_source.load(Ordering::Relaxed), Ordering::Relaxed);
        if !self.has_boot_value() {
            self.is_refused.store(false, Ordering::Relaxed);
        }
    }

    /// Returns whether the definition has refused a value, and none of the server's has been applied since.
    fn was_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed) && self.placeholder.load(Ordering::Relaxed) == PLACEHOLDER
    }

    /// Returns whether somebody else's value may have replaced that of the server's configuration in this session.
    fn is_shadowed(&self) -> bool {
        // SAFETY: a number that does not change while the process runs.
        let is_parallel_worker = unsafe { pg_sys::ParallelWorkerNumber } >= 0;
        // A parallel worker takes its leader's settings, and the boot value where its leader has that.
        self.is_refused.load(Ordering::Relaxed)
            || is_parallel_worker
                && !self.is_preloaded.load(Ordering::Relaxed)
                && self.placeholder.load(Ordering::Relaxed) != NO_PLACEHOLDER
                && self.has_boot_value()
    }
}
