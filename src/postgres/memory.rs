//! The allocator, where the system refuses memory.
//!
//! PostgreSQL raises an error then, but Rust ends the process, and so the whole server. The allocator cannot raise an error either: it
//! would jump over frames that hold locks or have something to drop. So each session keeps some memory in reserve and gives it up when
//! more is refused. The error is raised where nothing is held: before a call begins without the reserve, and in loops that collect.
//!
//! The reserve suffices for what a call does until then if nothing in it has a size that the caller chooses. So a long text is refused
//! by its length first. Values whose number others choose are kept by [`push`] or [`granted`], or in a tree, whose nodes are small, and
//! the loop calls [`require`].
#![allow(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::TryReserveError;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use pgrx::{PgLogLevel, PgSqlErrorCode, ereport};

/// The bytes of the reserve. Nobody writes there, so they are no more than addresses.
const RESERVE_BYTES: usize = 2 << 20;
/// How much memory has to be left for what must not fail. A memory context of PostgreSQL that has grown asks for a block of 1 MB.
const MIN_FREE_BYTES: usize = (1 << 20) + (1 << 16);

const MESSAGE: &CStr = c"out of memory";
const DETAIL: &CStr = c"The system refuses memory to this session.";

/// Where the reserve is; null if it was given up.
static HELD: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The system's allocator, which is asked again without the reserve if it refuses memory.
struct Allocator;

// SAFETY: all memory is the system's. Nothing here unwinds.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        retry_without_reserve(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        retry_without_reserve(|| unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises. If the system refuses more, the memory stays as it is.
        retry_without_reserve(|| unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn retry_without_reserve(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let memory = allocate();
    if memory.is_null() && give_up() { allocate() } else { memory }
}

/// Gives up the reserve. Returns whether there was one.
#[cold]
fn give_up() -> bool {
    let held = HELD.swap(ptr::null_mut(), Relaxed);
    // SAFETY: nothing is there.
    unsafe { libc::free(held) };
    !held.is_null()
}

/// Returns whether this session has its reserve, which it takes if it can.
#[inline]
pub fn is_reserved() -> bool {
    !HELD.load(Relaxed).is_null() || take()
}

#[cold]
fn take() -> bool {
    // SAFETY: nobody uses the memory.
    HELD.store(unsafe { libc::malloc(RESERVE_BYTES) }, Relaxed);
    !HELD.load(Relaxed).is_null()
}

/// Makes sure that memory is left for what must not fail, if necessary by giving up the reserve. Returns whether it is.
pub fn ensure_memory_left() -> bool {
    let ensure_memory_left = || {
        // SAFETY: nobody uses the memory, which the compiler does not know.
        unsafe {
            let memory = black_box(libc::malloc(MIN_FREE_BYTES));
            libc::free(memory);
            !memory.is_null()
        }
    };
    ensure_memory_left() || give_up() && ensure_memory_left()
}

/// Raises an error if this session has no reserve. No lock may be held, here and below.
#[inline]
pub fn require() {
    if !is_reserved() {
        refuse();
    }
}

/// Raises the error that memory was refused.
#[cold]
pub fn refuse() -> ! {
    let [message, detail] = [MESSAGE, DETAIL].map(|text| text.to_str().unwrap_or_default());
    ereport!(ERROR, PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, message, detail);
}

/// Raises an error if a collection could not reserve room.
pub fn granted(room: Result<(), TryReserveError>) {
    require();
    if room.is_err() {
        refuse();
    }
}

/// Adds a value to others whose number somebody else chooses.
pub fn push<T>(values: &mut Vec<T>, value: T) {
    granted(values.try_reserve(1));
    values.push(value);
}

/// Collects values whose number somebody else chooses.
pub fn collect_or_raise<T>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    values.into_iter().for_each(|value| push(&mut all, value));
    all
}

/// Returns an empty list with room for so many values.
pub fn with_room<T>(count: usize) -> Vec<T> {
    let mut empty = Vec::new();
    granted(empty.try_reserve_exact(count));
    empty
}

/// Raises the error without Rust's help, which may need memory itself: before anything else is called, or as a FATAL.
///
/// # Safety
/// The error jumps over the frames of the caller, up to the entry point, so these may hold nothing that must be dropped.
#[cold]
pub unsafe fn refuse_call(level: PgLogLevel) {
    unsafe extern "C-unwind" {
        fn errstart(level: c_int, domain: *const c_char) -> bool;
        fn errcode(sqlstate: c_int) -> c_int;
        fn errmsg_internal(format: *const c_char, ...) -> c_int;
        fn errdetail_internal(format: *const c_char, ...) -> c_int;
        fn errfinish(file: *const c_char, line: c_int, function: *const c_char);
    }
    // SAFETY: as the caller promises; these are C strings without a format.
    unsafe {
        if errstart(level as c_int, ptr::null()) {
            errcode(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as c_int);
            errmsg_internal(MESSAGE.as_ptr());
            errdetail_internal(DETAIL.as_ptr());
            errfinish(c"memory.rs".as_ptr(), line!() as c_int, c"refuse_call".as_ptr());
        }
    }
}
