//! Settings that only the server's configuration may set.
#![allow(unsafe_code, reason = "pgrx does not wrap placeholders and sources of settings")]

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use pgrx::pg_sys::GucSource::PGC_S_DEFAULT;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};

/// A setting that only the server's configuration may set.
///
/// The problem: until the library is loaded, PostgreSQL does not know this rule. It keeps any value of the setting in a
/// placeholder, where the value of a client, role or database replaces the value of the configuration file. When the setting is
/// defined, PostgreSQL refuses the placeholder's value, and only the boot value remains.
pub struct ServerSetting {
    name: &'static CStr,
    value: GucSetting<i32>,
    /// Whether a session defined it in the place of a placeholder. The value of one that has been removed from the configuration is
    /// empty. If the server's start defined it, only the configuration has set it since.
    had_placeholder: AtomicBool,
    /// Whether the definition has refused the placeholder's value, such as a text in the server's configuration.
    is_refused: AtomicBool,
}

impl ServerSetting {
    /// Creates a setting that is not defined yet.
    pub const fn new(name: &'static CStr, boot_value: i32) -> Self {
        Self {
            name,
            value: GucSetting::<i32>::new(boot_value),
            had_placeholder: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Defines the setting in PostgreSQL.
    pub fn define(&'static self, short: &'static CStr, long: &'static CStr, (min, max): (i32, i32)) {
        // SAFETY: it reads variables of this process; the name is a C string, and the setting may be missing.
        let (had_placeholder, in_session) = unsafe {
            let placeholder = pg_sys::GetConfigOption(self.name.as_ptr(), true, false);
            (!placeholder.is_null(), !pg_sys::process_shared_preload_libraries_in_progress)
        };
        let (context, flags) = (GucContext::Sighup, GucFlags::default());
        GucRegistry::define_int_guc(self.name, short, long, &self.value, min, max, context, flags);
        self.had_placeholder.store(had_placeholder && in_session, Ordering::Relaxed);
        self.is_refused.store(had_placeholder && self.has_boot_value(), Ordering::Relaxed);
    }

    /// Returns the value in force in this session, or None if it is negative.
    pub fn value(&self) -> Option<u32> {
        self.value.get().try_into().ok()
    }

    fn has_boot_value(&self) -> bool {
        // SAFETY: the setting is defined, so PostgreSQL finds it.
        unsafe {
            #[cfg(feature = "pg15")]
            let found = (0..pg_sys::GetNumConfigOptions() as usize)
                .map(|number| *pg_sys::get_guc_variables().add(number))
                .find(|&one| CStr::from_ptr((*one).name) == self.name);
            #[cfg(not(feature = "pg15"))]
            let found = Some(pg_sys::find_option(self.name.as_ptr(), false, true, 0)).filter(|one| !one.is_null());
            found.is_none_or(|one| (*one).source == PGC_S_DEFAULT)
        }
    }

    /// Returns whether the value of a client, role or database may have replaced the server's value in this session, or whether the server
    /// has no valid value.
    pub fn is_shadowed(&self) -> bool {
        // SAFETY: a number that does not change while the process runs.
        let is_parallel_worker = unsafe { pg_sys::ParallelWorkerNumber } >= 0;
        // A parallel worker gets the settings of its leader, and the boot value if the leader has that.
        let is_refused = self.is_refused.load(Ordering::Relaxed);
        let may_be_refused = is_parallel_worker && self.had_placeholder.load(Ordering::Relaxed);
        (is_refused || may_be_refused) && self.has_boot_value()
    }
}
