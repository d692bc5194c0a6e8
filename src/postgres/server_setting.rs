//! Settings that only the server's configuration may set.
#![allow(unsafe_code, reason = "pgrx does not wrap check hooks and placeholders")]

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use pgrx::pg_sys::GucSource::PGC_S_DEFAULT;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};

/// A setting that only the server's configuration may set.
///
/// The problem: until the library is loaded, PostgreSQL does not know this rule. It keeps any value of the setting in a
/// placeholder, where the value of a client, role or database replaces the value of the configuration file. When the setting is
/// defined, PostgreSQL refuses the placeholder's value, and only the boot value remains.
pub struct ServerSetting {
    value: GucSetting<i32>,
    /// Whether there was a placeholder when it was defined. The value of one that has been removed from the configuration is empty.
    had_placeholder: AtomicBool,
    /// The source of the value that was checked last, which need not have been applied.
    checked_source: AtomicU32,
    /// The source of the value in force.
    source: AtomicU32,
    /// Whether the definition has refused a placeholder's value, and no value has been applied since.
    is_refused: AtomicBool,
    /// Whether the setting was defined at the server's start. Then only the server's configuration has set it since.
    is_preloaded: AtomicBool,
}

pub type CheckHook = unsafe extern "C-unwind" fn(*mut i32, *mut *mut c_void, pg_sys::GucSource::Type) -> bool;
pub type AssignHook = unsafe extern "C-unwind" fn(i32, *mut c_void);

impl ServerSetting {
    /// Creates a setting that is not defined yet.
    pub const fn new(boot_value: i32) -> Self {
        Self {
            value: GucSetting::<i32>::new(boot_value),
            had_placeholder: AtomicBool::new(false),
            checked_source: AtomicU32::new(PGC_S_DEFAULT),
            source: AtomicU32::new(PGC_S_DEFAULT),
            is_refused: AtomicBool::new(false),
            is_preloaded: AtomicBool::new(false),
        }
    }

    /// Defines the setting in PostgreSQL. `hooks!` makes the two functions from the setting.
    pub fn define(
        &'static self,
        name: &'static CStr,
        short: &'static CStr,
        long: &'static CStr,
        (min, max): (i32, i32),
        (check, assign): (CheckHook, AssignHook),
    ) {
        // SAFETY: the name is a C string, and the setting may be missing.
        let had_placeholder = unsafe { !pg_sys::GetConfigOption(name.as_ptr(), true, false).is_null() };
        self.had_placeholder.store(had_placeholder, Ordering::Relaxed);
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
                max,
                GucContext::Sighup,
                GucFlags::default(),
                Some(check),
                Some(assign),
                None,
            );
        }
        self.is_refused.store(had_placeholder && self.has_boot_value(), Ordering::Relaxed);
    }

    /// Returns the value in force in this session, or None if it is negative.
    pub fn value(&self) -> Option<u32> {
        self.value.get().try_into().ok()
    }

    fn has_boot_value(&self) -> bool {
        self.source.load(Ordering::Relaxed) == PGC_S_DEFAULT
    }

    /// PostgreSQL also checks values that it does not apply, for ALTER SYSTEM and for the view pg_file_settings.
    pub fn checked(&self, source: pg_sys::GucSource::Type) -> bool {
        self.checked_source.store(source, Ordering::Relaxed);
        true
    }

    /// Records the source of the value in force.
    pub fn assigned(&self) {
        self.source.store(self.checked_source.load(Ordering::Relaxed), Ordering::Relaxed);
        if !self.has_boot_value() {
            self.is_refused.store(false, Ordering::Relaxed);
        }
    }

    /// Returns whether the value of a client, role or database may have replaced the server's value in this session.
    pub fn is_shadowed(&self) -> bool {
        // SAFETY: a number that does not change while the process runs.
        let is_parallel_worker = unsafe { pg_sys::ParallelWorkerNumber } >= 0;
        // A parallel worker gets the settings of its leader, and the boot value if the leader has that.
        self.is_refused.load(Ordering::Relaxed)
            || is_parallel_worker
                && !self.is_preloaded.load(Ordering::Relaxed)
                && self.had_placeholder.load(Ordering::Relaxed)
                && self.has_boot_value()
    }
}

/// Defines the hooks of a setting.
macro_rules! setting_hooks {
    ($setting:ident) => {{
        unsafe extern "C-unwind" fn check(
            _: *mut i32,
            _: *mut *mut std::ffi::c_void,
            source: pgrx::pg_sys::GucSource::Type,
        ) -> bool {
            $setting.checked(source)
        }
        unsafe extern "C-unwind" fn assign(_: i32, _: *mut std::ffi::c_void) {
            $setting.assigned()
        }
        (check, assign)
    }};
}
pub(crate) use setting_hooks;
