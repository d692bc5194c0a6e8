//! Where shared memory comes from, whether or not the library is preloaded: a block in PostgreSQL's main segment, which has some
//! spare room for extensions that are loaded later, and dynamic segments that the first session creates.
#![allow(unsafe_code, reason = "shared memory consists of raw pointers")]

use std::cell::Cell;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};

use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgTryBuilder, pg_guard, pg_sys};

/// The index of `AddinShmemInitLock` among PostgreSQL's named locks (lwlocknames.txt, lwlocklist.h). pgrx does not export
/// it, so look it up before adding a version here.
const ADDIN_SHMEM_INIT_LOCK: usize = match pg_sys::PG_MAJORVERSION_NUM {
    15..=19 => 21,
    _ => panic!("the index of AddinShmemInitLock in this PostgreSQL version has not been looked up"),
};

/// Returns a block of the main segment by its name, or why there is none. All sessions get the same block. The first session to ask
/// fills it with `new`, and it lives as long as the server.
///
/// # Safety Every library that asks for this name must use this size, and a `T` that can read what the other libraries have
/// written. It must begin with a 32-bit number other than 0.
pub unsafe fn main_segment_block<T: Sync>(
    name: &'static CStr,
    size: usize,
    new: impl FnOnce() -> T + UnwindSafe,
) -> Result<&'static T, String> {
    assert!(size_of::<T>() <= size);
    or_message(|| {
        let mut found = false;
        // SAFETY: the lock keeps other sessions from seeing the memory before it is filled.
        unsafe {
            let lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
            pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
            let memory = pg_sys::ShmemInitStruct(name.as_ptr(), size, &mut found).cast::<T>();
            // The block is still empty if the first session failed before it filled the block.
            if !found || memory.cast::<u32>().read() == 0 {
                memory.write(new());
            }
            pg_sys::LWLockRelease(lock);
            &*memory
        }
    })
}

/// Returns three arrays in the main segment by their name, of so many elements each, or why there are none. The first process to ask
/// creates them.
///
/// # Safety All processes must use this name with the same types and numbers. All types must be made for shared memory.
pub unsafe fn main_segment_arrays<T: Default, U: Default, V: Default>(
    name: &'static CStr,
    numbers: [usize; 3],
) -> Result<(*mut T, *mut U, *mut V), String> {
    or_message(|| {
        let mut found = false;
        // SAFETY: the lock keeps other processes from seeing the memory before it is filled; it is aligned to cache lines.
        unsafe {
            let lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
            pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
            let memory = pg_sys::ShmemInitStruct(name.as_ptr(), size_of_arrays::<T, U, V>(numbers), &mut found);
            let arrays = arrays(memory.cast(), numbers);
            if !found {
                fill(arrays, numbers);
            }
            pg_sys::LWLockRelease(lock);
            arrays
        }
    })
}

/// Returns how many bytes these arrays take.
pub const fn size_of_arrays<T, U, V>([first, second, third]: [usize; 3]) -> usize {
    const { assert!(size_of::<T>().is_multiple_of(align_of::<U>()) && align_of::<T>() <= 64) };
    const { assert!(size_of::<U>().is_multiple_of(align_of::<V>())) };
    first * size_of::<T>() + second * size_of::<U>() + third * size_of::<V>()
}

fn arrays<T, U, V>(memory: *mut T, [first, second, _]: [usize; 3]) -> (*mut T, *mut U, *mut V) {
    let after = memory.wrapping_add(first).cast::<U>();
    (memory, after, after.wrapping_add(second).cast::<V>())
}

/// # Safety There must be memory for this many.
unsafe fn fill<T: Default, U: Default, V: Default>(
    (first, second, third): (*mut T, *mut U, *mut V),
    numbers: [usize; 3],
) {
    // SAFETY: as the caller promises.
    unsafe {
        (0..numbers[0]).for_each(|at| first.add(at).write(T::default()));
        (0..numbers[1]).for_each(|at| second.add(at).write(U::default()));
        (0..numbers[2]).for_each(|at| third.add(at).write(V::default()));
    }
}

/// Returns three arrays in a dynamic segment, of so many elements each, or why there are none. The first session to ask creates the
/// segment and stores its handle in `handle`, where the others find it. It lives as long as the server, and its mapping as long as
/// the session.
///
/// # Safety All sessions must use this handle with the same types and numbers. All types must be made for shared memory.
pub unsafe fn segment<T: Default, U: Default, V: Default>(
    handle: &AtomicU32,
    numbers: [usize; 3],
) -> Result<(*mut T, *mut U, *mut V), String> {
    // SAFETY: the segment is pinned before its handle is known, and has room for all elements. Its memory is aligned to pages.
    // Without a resource owner, the mapping lasts until the session ends.
    unsafe {
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::CurrentResourceOwner = std::ptr::null_mut();
        let parts = or_message(AssertUnwindSafe(|| {
            let parts = |segment| arrays(pg_sys::dsm_segment_address(segment).cast(), numbers);
            let mut segment = std::ptr::null_mut();
            if handle.load(Ordering::Acquire) == 0 {
                segment = pg_sys::dsm_create(size_of_arrays::<T, U, V>(numbers), 0);
                fill(parts(segment), numbers);
                let created = pg_sys::dsm_segment_handle(segment);
                if handle.compare_exchange(0, created, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                    pg_sys::dsm_pin_segment(segment);
                } else {
                    pg_sys::dsm_detach(segment);
                    segment = std::ptr::null_mut();
                }
            }
            if segment.is_null() {
                let handle = handle.load(Ordering::Acquire);
                // An attempt that failed may have left its mapping, and PostgreSQL refuses a second mapping.
                let left = pg_sys::dsm_find_mapping(handle);
                if !left.is_null() {
                    pg_sys::dsm_detach(left);
                }
                segment = pg_sys::dsm_attach(handle);
            }
            if segment.is_null() { None } else { Some(parts(segment)) }
        }));
        pg_sys::CurrentResourceOwner = owner;
        parts?.ok_or_else(|| "the segment no longer exists".to_owned())
    }
}

/// Returns the result of `make`, or the message of the error that it raised.
fn or_message<R>(make: impl FnOnce() -> R + UnwindSafe) -> Result<R, String> {
    PgTryBuilder::new(AssertUnwindSafe(|| Ok(make())))
        .catch_others(|error| {
            // SAFETY: the error may have left locks held; PostgreSQL calls SQL functions with none held.
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

/// How many bytes to reserve, and what to call when they exist.
type Reserved = (fn() -> usize, fn());

thread_local! {
    static NEXT_STARTUP_HOOK: Cell<pg_sys::shmem_startup_hook_type> = const { Cell::new(None) };
    static NEXT_REQUEST_HOOK: Cell<pg_sys::shmem_request_hook_type> = const { Cell::new(None) };
    static RESERVED: Cell<Reserved> = const { Cell::new((|| 0, || ())) };
}

/// If the library is being preloaded, reserves space in the main segment, and registers `at_startup` to be called when it exists.
/// `size` is called when the number of slots is known.
pub fn reserve(size: fn() -> usize, at_startup: fn()) {
    #[pg_guard]
    unsafe extern "C-unwind" fn request() {
        if let Some(next) = NEXT_REQUEST_HOOK.get() {
            // SAFETY: this is the hook that was set before.
            unsafe { next() };
        }
        // SAFETY: PostgreSQL calls this hook for requests of memory.
        unsafe { pg_sys::RequestAddinShmemSpace(RESERVED.get().0()) };
    }
    #[pg_guard]
    unsafe extern "C-unwind" fn startup() {
        if let Some(next) = NEXT_STARTUP_HOOK.get() {
            // SAFETY: this is the hook that was set before.
            unsafe { next() };
        }
        RESERVED.get().1();
    }
    // SAFETY: the hooks are variables of the postmaster, which has one thread.
    unsafe {
        if !pg_sys::process_shared_preload_libraries_in_progress {
            return;
        }
        RESERVED.set((size, at_startup));
        NEXT_REQUEST_HOOK.set(pg_sys::shmem_request_hook);
        NEXT_STARTUP_HOOK.set(pg_sys::shmem_startup_hook);
        pg_sys::shmem_request_hook = Some(request);
        pg_sys::shmem_startup_hook = Some(startup);
    }
}
