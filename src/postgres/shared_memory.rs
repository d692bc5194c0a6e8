//! Memory that all sessions share. In a server that preloads the library, it is a part of PostgreSQL's main segment, so it is there from
//! the start. In any other server it is a dynamic segment, which the first session creates and all others find. PostgreSQL's registry
//! of such segments (since 17) does not help: it refuses a segment of another size, such as another version's, with an error of its
//! own, which could not say what helps.
#![allow(unsafe_code, reason = "shared memory consists of raw pointers")]

use std::cell::Cell;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};

use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgTryBuilder, pg_guard, pg_sys};

/// Returns the handle of the segment of a name, 0 before it is created. The handle is in the main segment, which has some spare room for
/// libraries that are loaded later, and is zero until it is used. So no session has to initialize the handle. May raise an error.
fn handle(name: &'static CStr) -> &'static AtomicU32 {
    let mut found = false;
    // SAFETY: nobody frees it, and zeros are a number.
    unsafe { &*pg_sys::ShmemInitStruct(name.as_ptr(), size_of::<AtomicU32>(), &mut found).cast() }
}

/// Returns the beginning of the memory of a name, aligned to a cache line, which lives as long as the server. If the server has not
/// preloaded the library, the session that creates the memory fills `size` bytes of it by `fill`, and the mapping lasts until the
/// session ends. May raise an error.
pub fn segment(name: &'static CStr, size: usize, fill: impl FnOnce(*mut u8)) -> *mut u8 {
    if let Some(start) = PRELOADED.get() {
        return start;
    }
    let handle = handle(name);
    // SAFETY: a mapping belongs to the current resource owner until it is pinned, so an error ends it.
    unsafe {
        let mut segment = std::ptr::null_mut();
        if handle.load(Ordering::Acquire) == 0 {
            segment = pg_sys::dsm_create(size, 0);
            fill(pg_sys::dsm_segment_address(segment).cast());
            let own = pg_sys::dsm_segment_handle(segment);
            if handle.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                pg_sys::dsm_pin_segment(segment);
            } else {
                pg_sys::dsm_detach(segment);
                segment = std::ptr::null_mut();
            }
        }
        if segment.is_null() {
            let handle = handle.load(Ordering::Acquire);
            let mapped = pg_sys::dsm_find_mapping(handle);
            segment = if mapped.is_null() { pg_sys::dsm_attach(handle) } else { mapped };
        }
        assert!(!segment.is_null(), "the segment no longer exists");
        pg_sys::dsm_pin_mapping(segment);
        pg_sys::dsm_segment_address(segment).cast()
    }
}

/// Calls `raise` with the message of an error that `act` raises. `raise` must raise an error instead, because the caught one may
/// have left locks and memory.
pub fn raising_instead<R>(act: impl FnOnce() -> R + UnwindSafe, raise: fn(String) -> !) -> R {
    let message = |error| match error {
        CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => raise(report.message().to_owned()),
        other @ CaughtError::RustPanic { .. } => other.rethrow(),
    };
    PgTryBuilder::new(AssertUnwindSafe(act)).catch_others(message).execute()
}

/// How the server gets and fills the memory at each start.
#[derive(Clone, Copy)]
pub struct Preloading {
    pub name: &'static CStr,
    /// Returns the size in bytes, once PostgreSQL has computed MaxBackends.
    pub size: fn() -> usize,
    /// Fills the memory.
    pub fill: fn(*mut u8),
}

thread_local! {
    static NEXT_REQUEST_HOOK: Cell<pg_sys::shmem_request_hook_type> = const { Cell::new(None) };
    static NEXT_STARTUP_HOOK: Cell<pg_sys::shmem_startup_hook_type> = const { Cell::new(None) };
    static PRELOADING: Cell<Option<Preloading>> = const { Cell::new(None) };
    /// The memory in the main segment. Sessions inherit it from the postmaster.
    static PRELOADED: Cell<Option<*mut u8>> = const { Cell::new(None) };
}

/// If the library is being preloaded, takes the memory from the main segment whenever the server starts. No role can use that up, while
/// any role can use up the dynamic segments of a server, by queries with many parallel parts.
pub fn at_startup(preloading: Preloading) {
    #[pg_guard]
    unsafe extern "C-unwind" fn request() {
        // SAFETY: this is the hook that was set before, and PostgreSQL computes the size of the main segment after it.
        unsafe {
            if let Some(next) = NEXT_REQUEST_HOOK.get() {
                next();
            }
            PRELOADING.get().into_iter().for_each(|own| pg_sys::RequestAddinShmemSpace((own.size)()));
        }
    }
    #[pg_guard]
    unsafe extern "C-unwind" fn startup() {
        // SAFETY: this is the hook that was set before. No session runs yet that could see the memory before it is filled.
        unsafe {
            if let Some(next) = NEXT_STARTUP_HOOK.get() {
                next();
            }
            if let Some(own) = PRELOADING.get() {
                let mut found = false;
                let start = pg_sys::ShmemInitStruct(own.name.as_ptr(), (own.size)(), &mut found).cast();
                (own.fill)(start);
                PRELOADED.set(Some(start));
            }
        }
    }
    // SAFETY: the hooks are variables of the postmaster, which has one thread.
    unsafe {
        if pg_sys::process_shared_preload_libraries_in_progress {
            PRELOADING.set(Some(preloading));
            NEXT_REQUEST_HOOK.set(pg_sys::shmem_request_hook);
            pg_sys::shmem_request_hook = Some(request);
            NEXT_STARTUP_HOOK.set(pg_sys::shmem_startup_hook);
            pg_sys::shmem_startup_hook = Some(startup);
        }
    }
}
