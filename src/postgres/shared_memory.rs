//! Where shared memory comes from, with the library preloaded or not: a control block in PostgreSQL's main segment, which
//! has some room for latecomers, and one dynamic segment with what the slots leave.
#![allow(unsafe_code, reason = "shared memory is made of raw pointers")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};

use flake_core::Traces;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgTryBuilder, pg_guard, pg_sys};

/// `AddinShmemInitLock`'s place among PostgreSQL's named locks, the same in 15 to 18 (lwlocknames.txt).
const ADDIN_SHMEM_INIT_LOCK: usize = 21;

/// Bytes of the control block in every version of the library: PostgreSQL finds it by its name and size.
pub const CONTROL: usize = 4096;

/// Memory of the main segment, `new` the first time that a session of this server asks for it; or why there is none. It
/// lives as long as the server, the same for all sessions.
pub fn control<T>(new: impl FnOnce() -> T + UnwindSafe) -> Result<&'static T, String> {
    const { assert!(size_of::<T>() <= CONTROL) };
    attempt(|| {
        let mut found = false;
        // SAFETY: the lock keeps other sessions from seeing the memory before it is filled.
        unsafe {
            let lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
            pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
            let memory = pg_sys::ShmemInitStruct(c"flake".as_ptr(), CONTROL, &mut found).cast::<T>();
            if !found {
                memory.write(new());
            }
            pg_sys::LWLockRelease(lock);
            &*memory
        }
    })
}

/// The traces of one slot, for the session in it; or why there are none. `handle` is where the server's sessions find the
/// segment of all `slots`.
pub fn traces(handle: &AtomicU32, slot: usize, slots: usize) -> Result<*mut Traces, String> {
    // SAFETY: the segment is pinned before its handle is known and has room for all slots; without a resource owner the
    // mapping lasts until the session ends.
    attempt(AssertUnwindSafe(|| unsafe {
        let owner = Restore(pg_sys::CurrentResourceOwner);
        pg_sys::CurrentResourceOwner = std::ptr::null_mut();
        let mut segment = std::ptr::null_mut();
        if handle.load(Ordering::Acquire) == 0 {
            let size = slots * size_of::<Traces>();
            segment = pg_sys::dsm_create(size, 0);
            let made = pg_sys::dsm_segment_address(segment).cast::<Traces>();
            std::slice::from_raw_parts_mut(made.cast::<std::mem::MaybeUninit<Traces>>(), slots)
                .fill(std::mem::MaybeUninit::new(Traces::default()));
            let own = pg_sys::dsm_segment_handle(segment);
            if handle.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                pg_sys::dsm_pin_segment(segment);
            } else {
                pg_sys::dsm_detach(segment);
                segment = std::ptr::null_mut();
            }
        }
        if segment.is_null() {
            segment = pg_sys::dsm_attach(handle.load(Ordering::Acquire));
        }
        drop(owner);
        if segment.is_null() {
            return std::ptr::null_mut();
        }
        pg_sys::dsm_segment_address(segment).cast::<Traces>().add(slot)
    }))
    .and_then(|traces| if traces.is_null() { Err("the segment is gone".to_owned()) } else { Ok(traces) })
}

/// Puts the current resource owner back, also after an error.
struct Restore(pg_sys::ResourceOwner);

impl Drop for Restore {
    fn drop(&mut self) {
        // SAFETY: it was the current one when this was made, in the same call.
        unsafe { pg_sys::CurrentResourceOwner = self.0 }
    }
}

/// What `make` returns, or the message of the error of PostgreSQL that it ended with.
fn attempt<R>(make: impl FnOnce() -> R + UnwindSafe) -> Result<R, String> {
    PgTryBuilder::new(AssertUnwindSafe(|| Ok(make())))
        .catch_others(|error| {
            // SAFETY: the error may have left locks behind; SQL functions are called with none held.
            unsafe { pg_sys::LWLockReleaseAll() };
            match error {
                CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => {
                    Err(report.message().to_owned())
                }
                other @ CaughtError::RustPanic { .. } => other.rethrow(),
            }
        })
        .execute()
}

thread_local! {
    static NEXT_STARTUP_HOOK: Cell<pg_sys::shmem_startup_hook_type> = const { Cell::new(None) };
    static NEXT_REQUEST_HOOK: Cell<pg_sys::shmem_request_hook_type> = const { Cell::new(None) };
    static AT_STARTUP: Cell<fn()> = const { Cell::new(|| ()) };
}

/// Where the library is preloaded: asks for the room of the control block and has `at_startup` called when it is there.
pub fn reserve(at_startup: fn()) {
    #[pg_guard]
    unsafe extern "C-unwind" fn request() {
        if let Some(next) = NEXT_REQUEST_HOOK.get() {
            // SAFETY: the hook that was there before.
            unsafe { next() };
        }
        // SAFETY: called by the hook that is for it.
        unsafe { pg_sys::RequestAddinShmemSpace(CONTROL) };
    }
    #[pg_guard]
    unsafe extern "C-unwind" fn startup() {
        if let Some(next) = NEXT_STARTUP_HOOK.get() {
            // SAFETY: the hook that was there before.
            unsafe { next() };
        }
        AT_STARTUP.get()();
    }
    // SAFETY: the hooks are variables of the postmaster, which has one thread.
    unsafe {
        if !pg_sys::process_shared_preload_libraries_in_progress {
            return;
        }
        AT_STARTUP.set(at_startup);
        NEXT_REQUEST_HOOK.set(pg_sys::shmem_request_hook);
        NEXT_STARTUP_HOOK.set(pg_sys::shmem_startup_hook);
        pg_sys::shmem_request_hook = Some(request);
        pg_sys::shmem_startup_hook = Some(startup);
    }
}
